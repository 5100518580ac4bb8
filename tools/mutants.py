"""Show that the tests detect deliberate defects: ``python -m tools.mutants``.

``tools/mutants.yaml`` lists the defects (mutants) by file, and the tests that must detect them. The
tool inserts one mutant after the other into a copy of the package and runs these tests. A mutant
that no test detects survives. A mutant is stale if its file no longer contains its text exactly
once; write it anew after a change of the code. If a mutant survives or is stale, the exit status
is 1. With ``--file``, the tool tries only the mutants of the files whose names contain the text, or
one of the texts if the option is repeated.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix('.yaml')
KILLED, SURVIVED, STALE = 'killed', 'SURVIVED', 'STALE'
# A test that waits forever because of a mutant detects it.
SECONDS = 900


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect of one file.

    :ivar file: the path of the file in the package
    :ivar tests: the tests that must detect the defect, below `placement.tests`
    :ivar engine: the database server of the tests; None for SQLite
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    engine: str | None

    def __str__(self) -> str:
        """Return the file and the first lines of both texts."""
        old, new = (' '.join(text.split())[:60] for text in (self.old, self.new))
        return f'{self.file}: {old} -> {new or "nothing"}'


def mutants() -> Iterator[Mutant]:
    """Yield the mutants of the list."""
    for group in yaml.safe_load(LIST.read_text()):
        for old, new in group['mutants']:
            tests, engine = tuple(group['tests']), group.get('engine')
            yield Mutant(group['file'], old, new, tests, engine)


def is_stale(mutant: Mutant, package: Path = ROOT / 'placement') -> bool:
    """Return whether the file is missing, or does not contain the text of a mutant exactly once."""
    path = package / mutant.file
    return not path.is_file() or path.read_text().count(mutant.old) != 1


def select(parts: Sequence[str], engine: str | None) -> Iterator[Mutant]:
    """Yield the mutants of the files whose names contain one of the parts.

    :param engine: the database server of their tests, or `sqlite`; None for all
    """
    for mutant in mutants():
        is_named = any(part in mutant.file for part in parts)
        if is_named and engine in (None, mutant.engine or 'sqlite'):
            yield mutant


class Copy:
    """A copy of the source tree, which the tests import."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns('__pycache__', '.*', 'build')
        for path in ROOT.iterdir():
            if path.is_dir() and not path.name.startswith('.'):
                shutil.copytree(path, folder / path.name, ignore=ignored)
            elif path.is_file():
                shutil.copy(path, folder)

    def try_mutant(self, mutant: Mutant) -> str:
        """Insert a mutant, run its tests, and remove it; return the result."""
        path = self.folder / 'placement' / mutant.file
        if is_stale(mutant, self.folder / 'placement'):
            return STALE
        before = path.read_text()
        path.write_text(before.replace(mutant.old, mutant.new))
        try:
            return SURVIVED if self.tests_pass(mutant.tests, mutant.engine) else KILLED
        finally:
            path.write_text(before)

    def tests_pass(self, tests: tuple[str, ...], engine: str | None) -> bool:
        """Return whether tests pass."""
        server = [] if engine is None else [sys.executable, 'tools/with_database.py', engine, '--']
        names = [f'placement.tests.{name}' for name in tests]
        # -B: a mutant can have the size and the time of the file before it.
        command = [*server, sys.executable, '-B', '-m', 'unittest', '--failfast', *names]
        try:
            completed = subprocess.run(
                command, cwd=self.folder, capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return completed.returncode == 0


def main() -> int:
    """Try the mutants; return the exit status."""
    parser = argparse.ArgumentParser(description='Show that the tests detect deliberate defects.')
    parser.add_argument(
        '--file', action='append', help='a part of the names of the files; can be repeated'
    )
    parser.add_argument('--engine', help='only mutants with this server; sqlite for none')
    options = parser.parse_args()
    selected = list(select(options.file or [''], options.engine))
    results: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix='placement-mutants-') as folder:
        copy = Copy(Path(folder))
        for tests, engine in dict.fromkeys((one.tests, one.engine) for one in selected):
            if not copy.tests_pass(tests, engine):
                sys.exit(f'Without a mutant, these tests fail: {", ".join(tests)}')
        for mutant in selected:
            begin = time.monotonic()
            result = copy.try_mutant(mutant)
            results[result] += 1
            print(f'{result:8} {time.monotonic() - begin:4.0f} s  {mutant}', flush=True)
    print(', '.join(f'{results[kind]} {kind}' for kind in (KILLED, SURVIVED, STALE)))
    return int(results[KILLED] != len(selected) or not selected)


if __name__ == '__main__':
    sys.exit(main())
