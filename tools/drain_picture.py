"""Write the source of the picture of a drain: ``python -m tools.drain_picture``.

The tool drains hosts of the demo cloud, as the page doc/source/admin/drain.rst does, and reads the
file with the moves. `tools.pictures` draws the source.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
import json
from pathlib import Path
import tempfile
from typing import Any

from placement.tests.functional.cmd import console_pages
from tools import demo_cloud, pictures

# The page shows this command with its output.
COMMAND = 'placement-manage drain compute-02 compute-03 --moves moves.jsonl'
SOURCE = pictures.SOURCES / 'drain.dot'

_HEAD = """\
// The moves of `drain compute-02 compute-03` on the demo cloud. Written by tools/drain_picture.py.
digraph drain {
  rankdir=LR ranksep=1 nodesep=0.3
"""
_CELLS = 'border="0" cellborder="1" cellspacing="0"'


def main() -> None:
    """Drain the hosts of the demo cloud, and write the source."""
    SOURCE.write_text(current_source())


def current_source() -> str:
    """Return the source for the moves of the command on the demo cloud."""
    with tempfile.TemporaryDirectory(prefix='placement-drain-') as folder:
        _, lines = console_pages.Session(Path(folder)).outputs((COMMAND, 'cat moves.jsonl'))
    names = {demo_cloud.uuid_of(one.name): one.name for one in demo_cloud.PROVIDERS}
    return source(map(json.loads, lines), names)


def source(moves: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> str:
    """Return the source of a picture with an arrow for the equal moves between two hosts.

    :param moves: lines of the file that ``drain --moves`` writes, in their order
    :param names: UUID of a root provider -> its name; another one appears with its UUID
    """
    # The old hosts, the new host, and the amounts of a consumer -> the number of consumers.
    groups: Counter[tuple[str, str, str]] = Counter()
    for move in moves:
        old = ', '.join(names.get(uuid, uuid) for uuid in move['from'])
        groups[old, names.get(move['to'], move['to']), _amounts(move['body'])] += 1
    lines = [_HEAD]
    for old in sorted({old for old, _, _ in groups}):
        arrows = [(new, text, count) for (name, new, text), count in groups.items() if name == old]
        lines += _host(old, arrows)
    return '\n'.join([*lines, '}', ''])


def _amounts(body: Mapping[str, Any]) -> str:
    amounts: Counter[str] = Counter()
    for allocation in body['allocations'].values():
        amounts.update(allocation['resources'])
    return ', '.join(f'{amount} {name}' for name, amount in amounts.items())


def _host(name: str, arrows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield the lines of a drained host: a row and an arrow for each group of its consumers."""
    rows, edges = [], []
    for number, (new, amounts, count) in enumerate(arrows):
        rows.append(f'    <tr><td port="{number}">&#160;{count} x ({amounts})&#160;</td></tr>')
        edges.append(f'  "{name}":{number}:e -> "{new}"')
    yield f'  "{name}" [shape=none style=solid margin=0 label=<<table {_CELLS}'
    yield '    cellpadding="5" color="#b35806">'
    yield f'    <tr><td bgcolor="#fbe9d7"><b>{name}</b></td></tr>'
    yield from rows
    yield '  </table>>]'
    yield from edges


if __name__ == '__main__':
    main()
