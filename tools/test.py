"""Set up and run every check and every test: ``python3 tools/test.py``.

Lint, types, then the test suite on SQLite, then its functional part on MariaDB and on PostgreSQL
servers that the run starts for itself. The web servers that some tests need are compiled if this
machine can do that. The last line of the output is the sum of all test runs; a lint or type check
that fails counts as one failed test.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
import io
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time
from typing import Any

import bootstrap

STESTR_STATE = bootstrap.ROOT / '.stestr' / 'next-stream'
# Tells the tests that a missing web server is a failure (placement/tests/functional/web).
REQUIRE_SERVERS = 'PLACEMENT_TEST_REQUIRE_SERVERS'
PASSED = frozenset({'success', 'xfail'})


@dataclass(frozen=True, slots=True)
class Check:
    """A command that is either right or wrong."""

    title: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """A database server that the functional tests can run on."""

    name: str
    title: str
    programs: tuple[str, ...]

    @property
    def installed(self) -> bool:
        return any(
            shutil.which(program) or any(Path('/').glob(program.lstrip('/')))
            for program in self.programs
        )


CHECKS = (
    Check('ruff check', ('ruff', 'check', '.')),
    Check('ruff format', ('ruff', 'format', '--check', '.')),
    Check('mypy', ('mypy',)),
)
ENGINES = (
    Engine('mariadb', 'MariaDB', ('mariadbd', '/usr/sbin/mariadbd')),
    Engine('postgresql', 'PostgreSQL', ('postgres', '/usr/lib/postgresql/*/bin/postgres')),
)


def main() -> None:
    options = _parse()
    if options.inside:
        sys.exit(_run_everything(options))
    python = bootstrap.prepare(
        'test',
        *('-e', '.[serve]'),
        *('-r', 'requirements.txt', '-r', 'test-requirements.txt', '-r', 'lint-requirements.txt'),
    )
    bootstrap.add_optional('server-test-requirements.txt')
    os.execv(python, [str(python), __file__, '--inside', *sys.argv[1:]])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Set up and run every check and every test.')
    parser.add_argument(
        '--require-databases',
        action='store_true',
        help='fail if MariaDB, PostgreSQL, uWSGI or Apache with mod_wsgi is missing',
    )
    parser.add_argument('--concurrency', default='2', help='test processes at once')
    parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_everything(options: argparse.Namespace) -> int:
    os.chdir(bootstrap.ROOT)
    os.environ['PATH'] = f'{bootstrap.VENV / "bin"}{os.pathsep}{os.environ["PATH"]}'
    if options.require_databases:
        os.environ[REQUIRE_SERVERS] = 'true'
    started = time.monotonic()
    notes: list[str] = []
    total: Counter[str] = Counter()
    for check in CHECKS:
        total['failed'] += _judge(check, notes)
    stestr = ('stestr', 'run', '--concurrency', options.concurrency)
    total += _test('unit and functional tests on SQLite', stestr, notes)
    for engine in ENGINES:
        title = f'functional tests on {engine.title}'
        if not engine.installed:
            total['failed'] += options.require_databases
            notes.append(f'{title}: SKIPPED, the server is not installed')
            continue
        wrapped = (sys.executable, 'tools/with_database.py', engine.name, '--', *stestr)
        total += _test(title, (*wrapped, r'placement\.tests\.functional'), notes)
    print(f'\n== Summary after {time.monotonic() - started:.0f} s')
    for note in notes:
        print(f'   {note}')
    failed = total['failed'] > 0 or total['passed'] == 0
    print(f'{total["passed"]} passed, {total["failed"]} failed', flush=True)
    return int(failed)


def _judge(check: Check, notes: list[str]) -> int:
    """Run a check; give the number of failures it adds."""
    print(f'\n== {check.title}', flush=True)
    failed = subprocess.run(check.command).returncode != 0
    notes.append(f'{check.title}: {"FAILED" if failed else "ok"}')
    return int(failed)


def _test(title: str, command: Sequence[str], notes: list[str]) -> Counter[str]:
    """Run a test command; give how many tests passed, failed and were skipped.

    The figures are read from the stream that the run recorded. A run that ended badly without
    recording a failure, or without recording anything, counts as one failed test.
    """
    print(f'\n== {title}', flush=True)
    before = _recorded_runs()
    status = subprocess.run(command).returncode
    tally = _last_run() if _recorded_runs() > before else Counter[str]()
    if not tally['failed'] and (status or not tally['passed']):
        tally['failed'] += 1
    notes.append(
        f'{title}: {tally["passed"]} passed, {tally["failed"]} failed, {tally["skipped"]} skipped'
    )
    return tally


def _recorded_runs() -> int:
    return int(STESTR_STATE.read_text()) if STESTR_STATE.exists() else 0


def _last_run() -> Counter[str]:
    import subunit
    import testtools

    stream = subprocess.run(('stestr', 'last', '--subunit'), capture_output=True).stdout
    tally: Counter[str] = Counter()

    def count(test: Any) -> None:
        if test['status'] == 'exists':
            return
        if test['status'] == 'skip':
            tally['skipped'] += 1
            return
        tally['passed' if test['status'] in PASSED else 'failed'] += 1

    sink = testtools.StreamToDict(count)
    sink.startTestRun()
    subunit.ByteStreamToStreamResult(io.BytesIO(stream), non_subunit_name='stdout').run(sink)
    sink.stopTestRun()
    return tally


if __name__ == '__main__':
    main()
