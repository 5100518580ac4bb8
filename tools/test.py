"""Run every check and every test: ``python3 tools/test.py``.

This script creates a virtual environment and runs:

* the style and type checks,
* the builds of the documentation, which fail on any warning,
* the test suite on SQLite,
* the functional tests on private MariaDB and PostgreSQL servers, on MariaDB with two drivers,
* a part of the tests on a private Galera cluster,
* a check that all test runs together reach the minimum coverage (see .coveragerc).

Some tests need web servers or the driver mysqlclient, which pip compiles if a compiler is
installed. The last lines of the output are a summary: the end of the message of each failed test,
the results of each check and each test run, and the total results. Each failed check counts as a
failed test.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import importlib.util
import io
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time
from typing import Any

import bootstrap
import docs

STESTR_STATE = bootstrap.ROOT / '.stestr' / 'next-stream'
# If this variable is set, the tests in placement/tests/functional/web fail if a web server is
# missing.
REQUIRE_SERVERS = 'PLACEMENT_TEST_REQUIRE_SERVERS'
# The tests in placement/tests/functional/galera run only if this variable is set.
CLUSTER = 'PLACEMENT_TEST_GALERA'
PASSED = frozenset({'success', 'xfail'})
# The summary contains this many lines of the message of a failed test, each of at most this length.
MESSAGE_LINES = 25
LINE_LENGTH = 200
# The package `coverage` measures every Python process that has these environment variables.
COVERAGE = {
    'COVERAGE_PROCESS_START': str(bootstrap.ROOT / '.coveragerc'),
    'COVERAGE_FILE': str(bootstrap.ROOT / '.coverage'),
}


@dataclass(frozen=True, slots=True)
class Check:
    """A check: a command that exits with a nonzero status if the check fails."""

    title: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """A database server, and the driver with which the functional tests can use it.

    :param driver: the module of a driver that may be missing; None if the driver is always
        installed
    """

    name: str
    title: str
    programs: tuple[str, ...]
    driver: str | None = None

    @property
    def missing(self) -> str | None:
        """Return the name of the missing part, `server` or `driver`; None if both are installed."""
        if not any(
            shutil.which(program) or any(Path('/').glob(program.lstrip('/')))
            for program in self.programs
        ):
            return 'server'
        if self.driver is not None and importlib.util.find_spec(self.driver) is None:
            return 'driver'
        return None


CHECKS = (
    Check('ruff check', ('ruff', 'check', '.')),
    Check('ruff format', ('ruff', 'format', '--check', '.')),
    Check('mypy', ('mypy',)),
    *(Check(f'sphinx: {document}', docs.command(document)) for document in docs.DOCUMENTS),
    Check('links in the documentation', docs.CHECK_LINKS),
)
COVERAGE_CHECK = Check('coverage', ('coverage', 'report'))
_MARIADB = ('mariadbd', '/usr/sbin/mariadbd')
ENGINES = (
    Engine('mariadb', 'MariaDB', _MARIADB),
    Engine('mariadb-mysqlclient', 'MariaDB with mysqlclient', _MARIADB, driver='MySQLdb'),
    Engine('postgresql', 'PostgreSQL', ('postgres', '/usr/lib/postgresql/*/bin/postgres')),
)


class Results:
    """Runs checks and tests, and counts their results."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._notes: list[str] = []
        self._failures: list[str] = []
        self._total: Counter[str] = Counter()

    def check(self, check: Check) -> None:
        """Run a check and, if the check fails, count one failed test."""
        print(f'\n== {check.title}', flush=True)
        failed = subprocess.run(check.command).returncode != 0
        self._total['failed'] += failed
        self._notes.append(f'{check.title}: {"FAILED" if failed else "ok"}')

    def test(self, title: str, command: Sequence[str], variables: Mapping[str, str]) -> None:
        """Run tests and count the passed, failed and skipped tests.

        The numbers are from the result stream that stestr stores. If the command fails although no
        test failed, or if stestr stores no results, the run counts as one failed test.
        """
        print(f'\n== {title}', flush=True)
        before = _recorded_runs()
        status = subprocess.run(command, env={**os.environ, **variables}).returncode
        tests = _last_run() if _recorded_runs() > before else []
        tally = Counter(_kind(test) for test in tests)
        if not tally['failed'] and (status or not tally['passed']):
            tally['failed'] += 1
        self._total += tally
        self._failures += [f'{title}: {_failure(one)}' for one in tests if _kind(one) == 'failed']
        numbers = ', '.join(f'{tally[kind]} {kind}' for kind in ('passed', 'failed', 'skipped'))
        self._notes.append(f'{title}: {numbers}')

    def skip(self, title: str, reason: str, failed: bool = False) -> None:
        """Add a skipped run to the summary; if `failed` is true, count it as one failed test."""
        self._total['failed'] += failed
        self._notes.append(f'{title}: SKIPPED, {reason}')

    def finish(self) -> int:
        """Print the summary and the total results; return the exit status."""
        for failure in self._failures:
            print(f'\n== FAILED in {failure}')
        print(f'\n== Summary after {time.monotonic() - self._started:.0f} s')
        for note in self._notes:
            print(f'   {note}')
        passed, failed = self._total['passed'], self._total['failed']
        print(f'{passed} passed, {failed} failed', flush=True)
        return int(failed > 0 or passed == 0)


def main() -> None:
    """Create the virtual environment, then run this script again in that environment."""
    options = _parse()
    if options.inside:
        sys.exit(_run_everything(options))
    files = ('requirements', 'test-requirements', 'lint-requirements', 'doc/requirements')
    requirements = (word for name in files for word in ('-r', f'{name}.txt'))
    python = bootstrap.prepare('test', '-e', '.[serve]', *requirements)
    for declaration in ('server-test-requirements.txt', 'driver-test-requirements.txt'):
        bootstrap.add_optional(declaration)
    os.execv(python, [str(python), __file__, '--inside', *sys.argv[1:]])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Run every check and every test.')
    parser.add_argument(
        '--require-databases',
        action='store_true',
        help='fail if a server, a program or a driver that tests need is missing',
    )
    parser.add_argument(
        '--concurrency', default='2', help='number of test processes (default: %(default)s)'
    )
    parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_everything(options: argparse.Namespace) -> int:
    os.chdir(bootstrap.ROOT)
    os.environ['PATH'] = f'{bootstrap.VENV / "bin"}{os.pathsep}{os.environ["PATH"]}'
    if options.require_databases:
        os.environ[REQUIRE_SERVERS] = 'true'
    results = Results()
    for check in CHECKS:
        results.check(check)
    subprocess.run(('coverage', 'erase'), check=True)
    _run_tests(results, options)
    _test_cluster(results, options)
    _check_coverage(results)
    return results.finish()


def _run_tests(results: Results, options: argparse.Namespace) -> None:
    stestr = ('stestr', 'run', '--concurrency', options.concurrency)
    results.test('unit and functional tests on SQLite', stestr, COVERAGE)
    for engine in ENGINES:
        title = f'functional tests on {engine.title}'
        if missing := engine.missing:
            reason = f'the {missing} is not installed'
            results.skip(title, reason, failed=options.require_databases)
            continue
        command = (sys.executable, 'tools/with_database.py', engine.name, '--', *stestr)
        results.test(title, (*command, r'placement\.tests\.functional'), COVERAGE)


def _test_cluster(results: Results, options: argparse.Namespace) -> None:
    sys.path.append(str(bootstrap.ROOT))
    from tools import galera

    title = 'tests on a Galera cluster'
    if missing := galera.missing_packages():
        reason = f'these packages are not installed: {", ".join(missing)}'
        results.skip(title, reason, failed=options.require_databases)
        return
    # Each test process would start a cluster, so there is only one. The path saves the import of
    # all other tests. The coverage of this run is not measured, because all of it is in servers.
    command = ('stestr', '--test-path', 'placement/tests/functional/galera', 'run')
    results.test(title, (*command, '--concurrency', '1'), {CLUSTER: 'bounded'})


def _check_coverage(results: Results) -> None:
    """Check the coverage of all test runs, which is complete only if every server is installed."""
    subprocess.run(('coverage', 'combine', '--quiet'))
    if all(engine.missing != 'server' for engine in ENGINES):
        results.check(COVERAGE_CHECK)
    else:
        results.skip(
            COVERAGE_CHECK.title, 'some code runs only on a database server that is not installed'
        )


def _recorded_runs() -> int:
    return int(STESTR_STATE.read_text()) if STESTR_STATE.exists() else 0


def _last_run() -> list[Any]:
    """Return the tests of the last run: `id`, `status`, and `details` of each."""
    import subunit
    import testtools

    stream = subprocess.run(('stestr', 'last', '--subunit'), capture_output=True).stdout
    tests: list[Any] = []
    sink = testtools.StreamToDict(tests.append)
    sink.startTestRun()
    subunit.ByteStreamToStreamResult(io.BytesIO(stream), non_subunit_name='stdout').run(sink)
    sink.stopTestRun()
    return [test for test in tests if test['status'] != 'exists']


def _kind(test: Mapping[str, Any]) -> str:
    if test['status'] == 'skip':
        return 'skipped'
    return 'passed' if test['status'] in PASSED else 'failed'


def _failure(test: Mapping[str, Any]) -> str:
    """Return the name of a failed test, and the end of its traceback or of its other details."""
    details = test['details']
    names = [name for name in details if 'traceback' in name] or list(details)
    data = b'\n'.join(b''.join(details[name].iter_bytes()) for name in names)
    text = data.decode(errors='replace')
    lines = [f'   {line[:LINE_LENGTH]}' for line in text.splitlines() if line.strip()]
    return '\n'.join([test['id'], *lines[-MESSAGE_LINES:]])


if __name__ == '__main__':
    main()
