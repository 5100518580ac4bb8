"""Compare this release with the reference release on the same databases: ``tox -e equivalence``.

Each release must be able to use a database that the other release created. On SQLite, MariaDB and
PostgreSQL, this tool

* creates a database with each release and compares the tables, columns, keys, constraints and
  indexes of the two databases;
* fills each database through the API of the release that created the database, and compares the
  responses of both releases;
* changes the database through the API of the other release, and compares the responses again.

PLACEMENT_REFERENCE_VENV is the path of a virtual environment with the reference release
(openstack-placement 16.0.0, PyMySQL and psycopg2). The tool runs the reference release, but does
not import or read its code.
"""

import argparse
from collections.abc import Iterator
import contextlib
from dataclasses import dataclass
import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
from typing import Any
import unittest

import gabbi_file
import requests
import sqlalchemy as sa
import web_server
import with_database

from placement.tests import schema

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = 'PLACEMENT_REFERENCE_VENV'
# The last microversion of the reference release.
LATEST = '1.39'
# The first and the last microversion, and the microversions that change the format of a response.
VERSIONS = f'1.0 1.6 1.8 1.11 1.12 1.14 1.17 1.19 1.28 1.34 1.38 {LATEST}'.split()

# Both releases run in this web server, so any difference is a difference between the applications.
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
    """A release with its Python interpreter and its PostgreSQL driver."""

    name: str
    python: str
    driver: str

    def environment(self, url: str) -> dict[str, str]:
        """Return the environment variables for a process that runs this release on a database."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(('OS_', 'PYTHON'))}
        environment['OS_PLACEMENT_DATABASE__CONNECTION'] = self.with_driver(url)
        environment['OS_API__AUTH_STRATEGY'] = 'noauth2'
        if self is not REFERENCE:
            environment['PYTHONPATH'] = str(ROOT)
        return environment

    def with_driver(self, url: str) -> str:
        """Return a database URL with the PostgreSQL driver of this release."""
        return url.replace('postgresql+psycopg:', f'postgresql+{self.driver}:')


THIS = Release('this', sys.executable, 'psycopg')
REFERENCE = Release(
    'reference', str(Path(os.environ.get(VARIABLE, ''), 'bin', 'python')), 'psycopg2'
)


class Report:
    """Collects the differences, and the paths for which the reference release responds with 5xx."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self.failures: set[str] = set()

    def compare(self, where: str, expected: Any, actual: Any) -> None:
        """Record the differences between two values, which can be nested dictionaries."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            for key in sorted(expected.keys() | actual.keys(), key=str):
                self.compare(f'{where} / {key}', expected.get(key), actual.get(key))
        elif expected != actual:
            self.differences.append(f'{where}:\n    {expected!r}\n    {actual!r}')

    def compare_views(self, where: str, views: dict[Release, dict[str, Any]]) -> int:
        """Compare the responses of both releases; return the number of compared responses.

        If the reference release returns a 5xx status, the response is not compared.
        """
        expected, actual = views[REFERENCE], views[THIS]
        failed = {path for path, response in expected.items() if response['status'] >= 500}
        self.failures |= failed
        for path in expected.keys() - failed:
            self.compare(f'{where} / {path} / reference, this', expected[path], actual[path])
        for path in failed:
            if actual[path]['status'] >= 500:
                self.compare(f'{where} / {path}', 'no server error', actual[path])
        return len(expected) - len(failed)


def main() -> int:
    """Compare the releases on the requested database systems; return 1 if there is a difference."""
    parser = argparse.ArgumentParser(description='Compare this release with the reference release.')
    engines = ['sqlite', 'mariadb', 'postgresql']
    parser.add_argument(
        'engines', nargs='*', metavar='ENGINE', help=f'one of: {", ".join(engines)} (default: all)'
    )
    chosen = parser.parse_args().engines or engines
    if not Path(REFERENCE.python).exists():
        print(f'Set {VARIABLE} to the path of a virtual environment with the reference release')
        return 2
    failed = False
    for engine in chosen:
        failed |= not compare_on(engine)
    return int(failed)


def compare_on(engine: str) -> bool:
    """Make all comparisons on one database system; return True if there is no difference."""
    report = Report()
    with with_database.databases(engine) as create_database:
        urls = create_database('by_this'), create_database('by_reference')
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
            count = compare_responses(report, first, second, url)
            print(
                f'{engine}: created and filled by {first.name}, changed by {second.name}: '
                f'{count} responses compared, {len(report.differences) - before} differences'
            )
    for path in sorted(report.failures):
        print(f'  the reference release returns a server error: {path}')
    for difference in report.differences:
        print(f'  {difference}')
    return not report.differences


def compare_schemas(report: Report, this: str, reference: str) -> int:
    """Compare the schemas of two databases; return the number of tables that were compared."""
    descriptions = []
    for url in (reference, this):
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        description = schema.describe(engine)
        for table, properties in description.items():
            properties['options'] = sa.inspect(engine).get_table_options(table)
            properties['options'].pop('mysql_auto_increment', None)
        with engine.connect() as conn:
            version = conn.exec_driver_sql('SELECT version_num FROM alembic_version').all()
        descriptions.append(description | {'version': [tuple(row) for row in version]})
    report.compare('schema', *descriptions)
    return len(descriptions[0]) - 1


def compare_responses(report: Report, first: Release, second: Release, url: str) -> int:
    """Fill a database with one release, change it with the other release, and compare responses.

    :returns: the number of compared responses
    """
    compared = 0
    with service(first, url) as client:
        perform(client, 'fill')
        filled = observe(client)
    with service(second, url) as client:
        views = {first: filled, second: observe(client)}
        compared += report.compare_views(f'filled by {first.name}', views)
        perform(client, 'change')
        changed = observe(client)
    with service(first, url) as client:
        views = {second: changed, first: observe(client)}
        compared += report.compare_views(f'changed by {second.name}', views)
    return compared


class Client:
    """An HTTP client of a service, with the roles admin and service."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.headers.update({'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'})

    def send(self, method: str, path: str, version: str, body: Any = None) -> requests.Response:
        """Send a request with a microversion and return the response."""
        return self.session.request(
            method,
            self.url + path,
            json=body,
            headers={'OpenStack-API-Version': f'placement {version}'},
            timeout=300,
        )


@contextlib.contextmanager
def service(release: Release, url: str) -> Iterator[Client]:
    """Run the service of a release on a database while the context is active."""
    port = with_database.free_port()
    with web_server.served(
        release.name,
        [release.python, '-c', SERVE, str(port)],
        port,
        release.environment(url),
        tempfile.gettempdir(),
    ):
        yield Client(f'http://127.0.0.1:{port}')


def perform(client: Client, name: str) -> None:
    """Send the requests of a gabbi file; raise an error if a request fails."""
    file = Path(__file__).with_name(f'equivalence-{name}.yaml')
    suite = gabbi_file.suite(file, client.url)
    result = unittest.TestResult()
    suite.run(result)
    for test, text in result.failures + result.errors:
        raise RuntimeError(f'{test.id()}: {text}')


def paths() -> Iterator[str]:
    """Generate the paths of all GET requests, which are sent before and after the change."""
    yield from ('/', '/resource_classes', '/traits', '/traits?name=startswith:CUSTOM_')
    yield from ('/traits?associated=true', '/resource_classes/CUSTOM_GOLD')
    providers = [f'00000000-0000-4000-8000-0000000000{number:02}' for number in _PROVIDERS]
    for query in (
        'resources=VCPU:1',
        'member_of=22222222-0000-4000-8000-000000000001',
        f'in_tree={providers[-2]}',
        'required=CUSTOM_FAST',
    ):
        yield f'/resource_providers?{query}'
    yield '/resource_providers'
    for provider in providers:
        yield f'/resource_providers/{provider}'
        for part in ('inventories', 'usages', 'aggregates', 'traits', 'allocations'):
            yield f'/resource_providers/{provider}/{part}'
    yield f'/resource_providers/{providers[0]}/inventories/VCPU'
    for number in range(1, 9):
        yield f'/allocations/11111111-0000-4000-8000-0000000000{number:02}'
    for project in ('a', 'b', 'c', 'd', 'a&user_id=user-b', 'a&consumer_type=INSTANCE'):
        yield f'/usages?project_id=project-{project}'
    yield '/usages?project_id=project-a&consumer_type=all'
    yield '/allocation_candidates?resources=VCPU:1,MEMORY_MB:256'
    yield '/allocation_candidates?resources=VCPU:1&required=CUSTOM_FAST'
    yield '/allocation_candidates?resources1=VCPU:1&resources2=SRIOV_NET_VF:1&group_policy=none'


# The last digits of the UUIDs of the providers.
_PROVIDERS = (1, 2, 3, 4, 5, 11, 12, 21, 41)


def observe(client: Client) -> dict[str, Any]:
    """Send all GET requests in all microversions and return the digests of the responses."""
    return {
        f'{version} {path}': digest(client.send('GET', path, version))
        for path in paths()
        for version in VERSIONS
    }


def digest(response: requests.Response) -> dict[str, Any]:
    """Return the parts of a response that must be equal in both releases, with sorted lists."""
    parts: dict[str, Any] = {
        'status': response.status_code,
        'dated': 'last-modified' in response.headers,
    }
    if response.status_code < 400 and response.content:
        body = response.json()
        parts['body'] = json.dumps(in_order(body), sort_keys=True)
        if body.get('inventories') == {}:
            # The reference release sends no Last-Modified header for empty inventories.
            del parts['dated']
    return parts


def in_order(value: Any) -> Any:
    """Return a copy of a JSON document in which all lists are sorted."""
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(
            (in_order(item) for item in value), key=lambda v: json.dumps(v, sort_keys=True)
        )
    return value


if __name__ == '__main__':
    sys.exit(main())
