"""Compare this service with the release before it, on one database: ``tox -e equivalence``.

A database that the reference release made has to be usable unchanged by this one, and the other way
round. On SQLite, MariaDB and PostgreSQL this

* lets both make a database and compares the schemas: tables, columns, keys, constraints, indexes;
* fills each database through the API of the one that made it, and compares the answers of both;
* changes it through the API of the other one, and compares the answers of both again.

PLACEMENT_REFERENCE_VENV names a virtual environment with the reference release (openstack-placement
16.0.0, PyMySQL and psycopg2). It is only run, never read.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
from dataclasses import dataclass
import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
from typing import Any

import equivalence_data as data
import requests
import sqlalchemy as sa
import web_server
import with_database

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = 'PLACEMENT_REFERENCE_VENV'

# One server for both, so that differences come from the applications alone.
SERVE = """
import sys
from wsgiref import simple_server
from placement.wsgi import api

class Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, *arguments):
        pass

simple_server.make_server('127.0.0.1', int(sys.argv[1]), api.application,
                          handler_class=Quiet).serve_forever()
"""
MANAGE = 'import sys; from placement.cmd import manage; sys.exit(manage.main())'


@dataclass(frozen=True, slots=True)
class Release:
    """One of the two releases: how its Python and its PostgreSQL driver are called."""

    name: str
    python: str
    driver: str

    def environment(self, url: str) -> dict[str, str]:
        """Give the environment of a process of this release that works on a database."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(('OS_', 'PYTHON'))}
        environment['OS_PLACEMENT_DATABASE__CONNECTION'] = self.localised(url)
        environment['OS_API__AUTH_STRATEGY'] = 'noauth2'
        if self is not REFERENCE:
            environment['PYTHONPATH'] = str(ROOT)
        return environment

    def localised(self, url: str) -> str:
        return url.replace('postgresql+psycopg:', f'postgresql+{self.driver}:')


THIS = Release('this', sys.executable, 'psycopg')
REFERENCE = Release(
    'reference', str(Path(os.environ.get(VARIABLE, ''), 'bin', 'python')), 'psycopg2'
)


class Report:
    """Counts what was compared, and keeps what was different."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self.faults: set[str] = set()

    def compare(self, where: str, expected: Any, found: Any) -> None:
        """Note a difference between two values, which may be nested dictionaries."""
        if isinstance(expected, dict) and isinstance(found, dict):
            for key in sorted(expected.keys() | found.keys(), key=str):
                self.compare(f'{where} / {key}', expected.get(key), found.get(key))
        elif expected != found:
            self.differences.append(f'{where}:\n    {expected!r}\n    {found!r}')

    def compare_views(self, where: str, views: dict[Release, dict[str, Any]]) -> int:
        """Compare what the releases see; give the number of answers that were compared."""
        expected, found = views[REFERENCE], views[THIS]
        faults = {path for path, answer in expected.items() if answer['status'] >= 500}
        self.faults |= faults
        for path in expected.keys() - faults:
            self.compare(f'{where} / {path} / reference, this', expected[path], found[path])
        for path in faults:
            if found[path]['status'] >= 500:
                self.compare(f'{where} / {path}', 'an answer', found[path])
        return len(expected) - len(faults)


def main() -> int:
    parser = argparse.ArgumentParser(description='Compare this service with the release before it.')
    engines = ['sqlite', *with_database.ENGINES]
    parser.add_argument('engines', nargs='*', metavar='ENGINE', help=f'of {engines}; all if none')
    chosen = parser.parse_args().engines or engines
    if not Path(REFERENCE.python).exists():
        print(f'{VARIABLE} has to name a virtual environment with the reference release')
        return 2
    failed = False
    for engine in chosen:
        failed |= not compare_on(engine)
    return int(failed)


def compare_on(engine: str) -> bool:
    """Make all comparisons on one engine; tell whether everything was the same."""
    report = Report()
    with databases(engine) as urls:
        for release, url in zip((THIS, REFERENCE), urls, strict=True):
            subprocess.run(
                [release.python, '-c', MANAGE, 'db', 'sync'],
                env=release.environment(url),
                cwd=tempfile.gettempdir(),
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        tables = compare_schemas(report, *urls)
        print(f'{engine}: {tables} tables compared, {len(report.differences)} differences')
        for first, second, url in ((THIS, REFERENCE, urls[0]), (REFERENCE, THIS, urls[1])):
            before = len(report.differences)
            answers = compare_answers(report, first, second, url)
            print(
                f'{engine}: made and filled by {first.name}, changed by {second.name}: '
                f'{answers} answers compared, {len(report.differences) - before} differences'
            )
    for fault in sorted(report.faults):
        print(f'  the reference fails: {fault}')
    for difference in report.differences:
        print(f'  {difference}')
    return not report.differences


@contextlib.contextmanager
def databases(engine: str) -> Iterator[tuple[str, str]]:
    """Give the URLs of two empty databases."""
    if engine == 'sqlite':
        with tempfile.TemporaryDirectory() as folder:
            yield f'sqlite:///{folder}/this.db', f'sqlite:///{folder}/reference.db'
        return
    with with_database.server(engine) as admin:
        url = sa.make_url(admin)
        server = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        with server.connect() as conn:
            for name in ('made_by_this', 'made_by_reference'):
                conn.exec_driver_sql(f'CREATE DATABASE {name}')
        yield (
            url.set(database='made_by_this').render_as_string(hide_password=False),
            url.set(database='made_by_reference').render_as_string(hide_password=False),
        )


def compare_schemas(report: Report, this: str, reference: str) -> int:
    """Compare the schemas of two databases; give the number of tables."""
    sys.path.insert(0, str(ROOT))
    from placement.tests import schema

    descriptions = []
    for url in (reference, this):
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        description = schema.describe(engine)
        for table, facts in description.items():
            facts['options'] = sa.inspect(engine).get_table_options(table)
            facts['options'].pop('mysql_auto_increment', None)
        with engine.connect() as conn:
            version = conn.exec_driver_sql('SELECT version_num FROM alembic_version').all()
        descriptions.append(description | {'version': [tuple(row) for row in version]})
    report.compare('schema', *descriptions)
    return len(descriptions[0]) - 1


def compare_answers(report: Report, first: Release, second: Release, url: str) -> int:
    """Fill a database with one release and change it with the other; compare what both see.

    Gives the number of answers that were compared. Where the reference fails (5xx) there is
    nothing to compare; that is counted by the report.
    """
    compared = 0
    with service(first, url) as ask:
        perform(ask, data.FILL)
        filled = observe(ask)
    with service(second, url) as ask:
        views = {first: filled, second: observe(ask)}
        compared += report.compare_views(f'filled by {first.name}', views)
        perform(ask, data.CHANGE)
        changed = observe(ask)
    with service(first, url) as ask:
        views = {second: changed, first: observe(ask)}
        compared += report.compare_views(f'changed by {second.name}', views)
    return compared


class Asker:
    """Sends requests to a service."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.headers.update({'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'})

    def __call__(self, method: str, path: str, version: str, body: Any = None) -> requests.Response:
        return self.session.request(
            method,
            self.url + path,
            json=body,
            headers={'OpenStack-API-Version': f'placement {version}'},
            timeout=30,
        )


@contextlib.contextmanager
def service(release: Release, url: str) -> Iterator[Asker]:
    """Run the service of a release on a database."""
    port = with_database.free_port()
    with web_server.served(
        release.name,
        [release.python, '-c', SERVE, str(port)],
        port,
        release.environment(url),
        tempfile.gettempdir(),
    ):
        yield Asker(f'http://127.0.0.1:{port}')


def perform(ask: Asker, steps: Sequence[data.Step]) -> None:
    """Send requests that all have to succeed."""
    for step in steps:
        answer = ask(step.method, step.path, step.version, step.body)
        if answer.status_code >= 300:
            raise RuntimeError(f'{step}: {answer.status_code} {answer.text}')


def observe(ask: Asker) -> dict[str, Any]:
    """Ask for everything there is to see, in all shapes it has."""
    return {
        f'{version} {path}': digest(ask('GET', path, version))
        for path in data.paths()
        for version in data.VERSIONS
    }


def digest(answer: requests.Response) -> dict[str, Any]:
    """Give what has to be the same in an answer. The order of lists means nothing."""
    facts: dict[str, Any] = {
        'status': answer.status_code,
        'dated': 'last-modified' in answer.headers,
    }
    if answer.status_code < 400 and answer.content:
        body = answer.json()
        facts['body'] = json.dumps(in_order(body), sort_keys=True)
        if body.get('inventories') == {}:
            del facts['dated']  # The reference gives no date to what is not there.
    return facts


def in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(
            (in_order(item) for item in value), key=lambda v: json.dumps(v, sort_keys=True)
        )
    return value


if __name__ == '__main__':
    sys.exit(main())
