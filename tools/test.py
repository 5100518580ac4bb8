"""Run the checks and the tests that every change must pass: ``python3 tools/test.py``.

This script creates a virtual environment and runs the gate:

* the style and type checks,
* the build of the documentation, which fails on any warning,
* the unit tests, and the functional tests on SQLite, which together reach a minimum coverage
  (.coveragerc),
* the functional tests on private MariaDB and PostgreSQL servers,
* some of them on a private MySQL server, which is downloaded if necessary,
* a part of the tests on a private Galera cluster, and on a private group of MySQL servers.

``placement/tests/where.py`` has the decorators that exclude tests from an engine or from the gate.
With ``--night``, the script runs those tests too, all of them with MySQL and with the driver
mysqlclient, more random examples, and the environments `NIGHT` of tox.

Some tests need web servers or the driver mysqlclient, which pip compiles if a compiler is
installed. The last lines of the output are a summary: the end of the message of each failed test,
the results of each check and each test run, and the total results. Each failed check counts as a
failed test.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
import importlib
import importlib.util
import io
import os
from pathlib import Path
import shutil
import subprocess
import sys
import threading
import time
from typing import Any

import bootstrap

FUNCTIONAL = 'placement/tests/functional'
# Servers and SQLite files in this file system wait for no disk: the tables of a database on MariaDB
# exist after 0.3 s instead of 3 s. It is used if it has this much space, and can have programs.
MEMORY = Path('/dev/shm')  # noqa: S108 (every user of it creates a directory of its own)
MEMORY_SPACE = 4 * 1024**3
# Each part of the tests has a directory here, in which stestr stores the results.
RESULTS = bootstrap.ROOT / '.stestr-parts'
# If this variable is set, the tests in placement/tests/functional/web fail if a web server is
# missing.
REQUIRE_SERVERS = 'PLACEMENT_TEST_REQUIRE_SERVERS'
# Only the functional tests of this part are loaded (placement/tests/functional/__init__.py), and
# with `night`, also those that are not part of the gate (placement/tests/where.py).
PART = 'PLACEMENT_TEST_PART'
PROFILE = 'PLACEMENT_TEST_PROFILE'
PARTS = ('programs', 'database', 'searches', 'races', 'others')
WEB = 'web'  # its tests run only on SQLite
# The environments of tox that are part of the night.
NIGHT = (
    *('lowest', 'newest', 'install', 'osc', 'keystone', 'clients', 'clients-oldest'),
    *('deployers', 'mutants', 'openapi-validate', 'docs'),
)
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
class Part:
    """A part of the run: a command that exits with a nonzero status if it fails.

    :ivar variables: environment variables of the command
    :ivar results: the directory in which stestr stores the results; None if the command runs no
        tests
    """

    title: str
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    results: Path | None = None


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


LINT = (
    Part('ruff check', ('ruff', 'check', '.')),
    Part('ruff format', ('ruff', 'format', '--check', '.')),
)
TYPES = Part('mypy', ('mypy',))
DOCUMENTATION = Part('documentation', (sys.executable, 'tools/docs.py'))
COVERAGE_CHECK = Part('coverage', ('coverage', 'report'))
_MARIADB = ('mariadbd', '/usr/sbin/mariadbd')
ENGINES = (
    Engine('mariadb', 'MariaDB', _MARIADB),
    Engine('postgresql', 'PostgreSQL', ('postgres', '/usr/lib/postgresql/*/bin/postgres')),
)
MYSQLCLIENT = Engine('mariadb-mysqlclient', 'MariaDB with mysqlclient', _MARIADB, driver='MySQLdb')


class Results:
    """Runs parts, and counts their results."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._notes: list[str] = []
        self._failures: list[str] = []
        self._total: Counter[str] = Counter()
        self._lock = threading.Lock()

    def run_beside(self, parts: Iterable[Part], number: int) -> None:
        """Run parts beside each other, at most `number` at a time, in their order."""
        with futures.ThreadPoolExecutor(number) as threads:
            for done in [threads.submit(self.run, part) for part in parts]:
                done.result()

    def run(self, part: Part, show: bool = False) -> None:
        """Run a part, print its output, and count its results.

        :param show: print the output while the part runs, and not when it ends
        """
        started = time.monotonic()
        if part.results is not None:
            shutil.rmtree(part.results, ignore_errors=True)
            part.results.mkdir(parents=True)
        print(f'-- {part.title} starts', flush=True)
        completed = subprocess.run(
            part.command,
            env={**os.environ, **part.variables},
            stdin=subprocess.DEVNULL,
            stdout=None if show else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
        )
        tests = [] if part.results is None else _tests(part.results)
        seconds = f'after {time.monotonic() - started:.0f} s'
        with self._lock:
            print(f'\n== {part.title}\n{completed.stdout or ""}', end='', flush=True)
            if part.results is None:
                self._count_check(part.title, completed.returncode != 0, seconds)
            else:
                self._count_tests(part.title, completed.returncode, tests, seconds)

    def _count_check(self, title: str, failed: bool, seconds: str) -> None:
        self._total['failed'] += failed
        self._notes.append(f'{title}: {"FAILED" if failed else "ok"} {seconds}')

    def _count_tests(self, title: str, status: int, tests: Sequence[Any], seconds: str) -> None:
        """Count the passed, failed and skipped tests.

        If the command fails although no test failed, or if stestr stores no results, the part
        counts as one failed test.
        """
        tally = Counter(_kind(test) for test in tests)
        if not tally['failed'] and (status or not tally['passed']):
            tally['failed'] += 1
        self._total += tally
        self._failures += [f'{title}: {_failure(one)}' for one in tests if _kind(one) == 'failed']
        numbers = ', '.join(f'{tally[kind]} {kind}' for kind in ('passed', 'failed', 'skipped'))
        self._notes.append(f'{title}: {numbers} {seconds}')

    def skip(self, title: str, reason: str, failed: bool = False) -> None:
        """Add a skipped part to the summary; if `failed` is true, count it as one failed test."""
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
        sys.exit(_run(options))
    python = bootstrap.prepare('test')
    os.execv(python, [str(python), __file__, '--inside', *sys.argv[1:]])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Run the checks and the tests that every change must pass.'
    )
    selection = parser.add_mutually_exclusive_group()
    selection.add_argument(
        '--quick', action='store_true', help='run only the style checks and the unit tests'
    )
    selection.add_argument(
        '--night', action='store_true', help='run every test; it takes more than an hour'
    )
    parser.add_argument(
        '--require-databases',
        action='store_true',
        help='fail if a server, a program or a driver that tests need is missing',
    )
    parser.add_argument(
        '--concurrency',
        type=int,
        # A part waits for servers during a half of its time, the tests of web servers and browsers
        # during two thirds. Two parts more than processors keep all processors busy.
        default=(os.cpu_count() or 1) + 2,
        help='number of parts that run beside each other (default: %(default)s)',
    )
    parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(options: argparse.Namespace) -> int:
    os.chdir(bootstrap.ROOT)
    os.environ['PATH'] = f'{bootstrap.VENV / "bin"}{os.pathsep}{os.environ["PATH"]}'
    results = Results()
    if options.quick:
        for part in (*LINT, _unit_tests({PROFILE: 'quick'}, processes=2)):
            results.run(part, show=True)
        return results.finish()
    if options.require_databases:
        os.environ[REQUIRE_SERVERS] = 'true'
    if options.night:
        os.environ[PROFILE] = 'night'
    if _has_space(MEMORY):
        os.environ.setdefault('TMPDIR', str(MEMORY))
    subprocess.run(('coverage', 'erase'), check=True)
    results.run_beside(_parts(results, options), options.concurrency)
    subprocess.run(('coverage', 'combine', '--quiet'))
    results.run(COVERAGE_CHECK)
    return results.finish()


def _parts(results: Results, options: argparse.Namespace) -> Iterator[Part]:
    # These parts run while pip compiles web servers and a driver, which all other parts can need.
    yield from (_unit_tests(COVERAGE), DOCUMENTATION, TYPES, *LINT)
    bootstrap.add_optional('uwsgi', 'mod-wsgi', 'mysqlclient')
    importlib.invalidate_caches()
    yield from _tests_on('sqlite', 'SQLite', variables=COVERAGE, parts=(WEB, *PARTS))
    yield from _tests_on_servers(results, options)
    sys.path.append(str(bootstrap.ROOT))
    yield from _tests_on_mysql(results, options)
    yield from _cluster_tests(results, options)
    if options.night:
        for name in NIGHT:
            # The unit tests above have tried the random examples of the night.
            yield Part(f'tox -e {name}', ('tox', '-q', '-e', name), {PROFILE: 'ci'})


def _has_space(folder: Path) -> bool:
    if not os.access(folder, os.W_OK):
        return False
    system = os.statvfs(folder)
    return not system.f_flag & os.ST_NOEXEC and system.f_bavail * system.f_frsize >= MEMORY_SPACE


def _stestr(name: str, path: str = FUNCTIONAL, processes: int = 1) -> tuple[tuple[str, ...], Path]:
    """Return a command that runs tests, and the directory of its results.

    With one process and without a regular expression, stestr imports the tests only once.

    :param path: the directory of the tests; others are not imported
    """
    results = RESULTS / name
    command = ('stestr', '--repo-url', str(results), '--test-path', path, 'run')
    return (*command, '--concurrency', str(processes)), results


def _unit_tests(variables: Mapping[str, str], processes: int = 1) -> Part:
    command, results = _stestr('unit', path='placement/tests/unit', processes=processes)
    return Part('unit tests', command, variables, results)


def _tests_on(
    database: str,
    title: str,
    server: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    parts: Sequence[str] = PARTS,
) -> Iterator[Part]:
    """Yield the parts of the functional tests on a database.

    :param server: a command that starts the server, and executes the command that follows it
    """
    for name in parts:
        command, results = _stestr(f'{database}-{name}')
        part = f'functional tests on {title}: {name}'
        yield Part(part, (*server, *command), {PART: name, **(variables or {})}, results)


def _tests_on_servers(results: Results, options: argparse.Namespace) -> Iterator[Part]:
    for engine in (*ENGINES, MYSQLCLIENT) if options.night else ENGINES:
        if missing := engine.missing:
            title = f'functional tests on {engine.title}'
            reason = f'the {missing} is not installed'
            results.skip(title, reason, failed=options.require_databases)
            continue
        yield from _tests_on(engine.name, engine.title, _server(engine.name))


def _server(engine: str) -> tuple[str, ...]:
    """Return the command that executes another one with a database server."""
    return (sys.executable, 'tools/with_database.py', engine, '--')


def _tests_on_mysql(results: Results, options: argparse.Namespace) -> Iterator[Part]:
    """Yield the tests on MySQL; skip them if MySQL cannot be had.

    Only the unstable suite of Debian contains MySQL, so a missing package does not fail the run.
    """
    from tools import galera, mysql

    title = 'tests on a group of MySQL servers'
    try:
        mysql.root()
    except mysql.UnavailableError as error:
        results.skip(f'functional tests on MySQL, {title}', f'MySQL cannot be had: {error}')
        return
    parts = PARTS if options.night else ('all',)
    yield from _tests_on('mysql', 'MySQL', _server('mysql'), parts=parts)
    if 'haproxy' in galera.missing_packages():
        results.skip(title, 'HAProxy is not installed', failed=options.require_databases)
        return
    command, path = _stestr('group', path=f'{FUNCTIONAL}/group_replication')
    yield Part(title, command, results=path)


def _cluster_tests(results: Results, options: argparse.Namespace) -> Iterator[Part]:
    from tools import galera

    title = 'tests on a Galera cluster'
    if missing := galera.missing_packages():
        reason = f'these packages are not installed: {", ".join(missing)}'
        results.skip(title, reason, failed=options.require_databases)
        return
    command, path = _stestr('galera', path=f'{FUNCTIONAL}/galera')
    yield Part(title, command, results=path)


def _tests(results: Path) -> list[Any]:
    """Return the tests of a run: `id`, `status`, and `details` of each."""
    import subunit
    import testtools

    command = ('stestr', '--repo-url', str(results), 'last', '--subunit')
    stream = subprocess.run(command, capture_output=True).stdout
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
