"""Write the source of the picture of a drain: ``python -m tools.drain_picture``.

The tool drains hosts of the demo cloud, as the page doc/source/admin/capacity.rst does, and reads
the file with the moves. `tools.pictures` draws the source.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
import json
from pathlib import Path
import tempfile
from typing import Any

from placement.tests.functional.cmd import console_pages
from tools import pictures

# The page shows this command with its output.
COMMAND = 'placement-manage drain compute-02 compute-03 --moves moves.jsonl'
SOURCE = pictures.SOURCES / 'drain.dot'

_HEAD = """\
// The moves of `drain compute-02 compute-03` on the demo cloud. Written by tools/drain_picture.py.
digraph drain {
  rankdir=LR ranksep=1 nodesep=0.3
"""
_TABLE = """border="0" cellborder="1" cellspacing="0"
    cellpadding="5" color="#b35806">"""


def main() -> None:
    """Drain the hosts of the demo cloud, and write the source."""
    SOURCE.write_text(current_source())


def current_source() -> str:
    """Return the source for the moves of the command on the demo cloud."""
    with tempfile.TemporaryDirectory(prefix='placement-drain-') as folder:
        _, lines = console_pages.Session(Path(folder)).outputs((COMMAND, 'cat moves.jsonl'))
    return source(map(json.loads, lines))


def source(moves: Iterable[Mapping[str, Any]]) -> str:
    """Return the source of a picture with an arrow for the equal moves between two hosts.

    :param moves: lines of the file that ``drain --moves`` writes, in their order
    """
    # The old hosts, the new host, and the amounts of a consumer -> the number of consumers.
    groups: Counter[tuple[str, str, str]] = Counter()
    for move in moves:
        old = ', '.join(move['from_names'])
        amounts: Counter[str] = Counter()
        for allocation in move['body']['allocations'].values():
            amounts.update(allocation['resources'])
        text = ', '.join(f'{amount} {name}' for name, amount in amounts.items())
        groups[old, move['to_name'], text] += 1
    # The drained host -> its rows and its arrows, one for each group of its consumers.
    rows: dict[str, list[str]] = defaultdict(list)
    arrows: dict[str, list[str]] = defaultdict(list)
    for (old, new, text), count in groups.items():
        port = len(rows[old])
        rows[old].append(f'    <tr><td port="{port}">&#160;{count} x ({text})&#160;</td></tr>')
        arrows[old].append(f'  "{old}":{port}:e -> "{new}"')
    lines = [_HEAD]
    for old in sorted(rows):
        lines.append(f'  "{old}" [shape=none style=solid margin=0 label=<<table {_TABLE}')
        lines.append(f'    <tr><td bgcolor="#fbe9d7"><b>{old}</b></td></tr>')
        lines += [*rows[old], '  </table>>]', *arrows[old]]
    return '\n'.join([*lines, '}', ''])


if __name__ == '__main__':
    main()
