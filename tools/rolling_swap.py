"""Replace the reference release by this release, and go back, under load: ``tox -e equivalence``.

The tool follows doc/source/admin/migration.rst with two uWSGI servers behind HAProxy. Both use the
files in etc/, one MariaDB database, and one placement.conf, which sets every option of this
release. The uWSGI of the reference release sends `Connection: close` only if the runbook adds the
option. The reference release creates the database and serves first. While clients read, claim, and
release through HAProxy, the tool

* checks the configuration and the database with the commands of this release;
* replaces the reference release by this release on one server after the other;
* replaces this release by the reference release on one server after the other.

The tool fails if a request fails, except with a generation conflict (409), or if an allocation that
the service granted is missing at the end.

PLACEMENT_REFERENCE_VENV is the path of a virtual environment with the reference release, PyMySQL,
and uWSGI. The tool runs the reference release, but does not import or read its code.
"""

from collections.abc import Collection, Iterator, Sequence
import contextlib
from dataclasses import dataclass
import json
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile
from typing import Any

import equivalence
import requests
import sqlalchemy as sa
import with_database

from placement.conf import opts
from placement.tests import schema, servers
from placement.tests.functional.deployment import files, haproxy, stack
from placement.tests.functional.faults import storm
from placement.tests.functional.faults.machines import Worker
from placement.tests.functional.races import audit, testcase
from placement.tests.functional.web import commands
from placement.tests.waiting import wait_until

RUNBOOK = equivalence.ROOT / 'doc' / 'source' / 'admin' / 'migration.rst'
PREFIX = '/placement'
PROVIDERS = tuple(f'00000000-0000-4000-8000-00000000000{number}' for number in (1, 2))
PER_PHASE = 20  # claims, and releases, that each phase must complete at least
RELEASED = -1  # in place of the status of a claim
# The sections with options of the service. Other sections belong to libraries.
SECTIONS = ('api', 'metrics', 'placement', 'placement_database', 'workarounds')
# The option of uWSGI that HAProxy requires. The runbook adds it to the old configuration.
_HEADER = 'add-header = Connection: close\n'
_ADDED_OPTION = re.compile(r'^    ([a-z-]+ = .+\n)', re.MULTILINE)
_HAPROXY_COMMAND = re.compile(r"echo '(set server placement/api1 state \w+)'")


@dataclass(frozen=True, slots=True)
class Place:
    """The directory with the files of all servers, and the URL of the database."""

    folder: Path
    url: str

    @property
    def configuration(self) -> Path:
        """Return the path of the configuration file that both releases read."""
        return self.folder / 'placement.conf'

    def run(
        self, release: equivalence.Release, module: str, *arguments: str, highest: int = 0
    ) -> str:
        """Run a command of a release and return its output.

        :param highest: the highest exit status of a successful command
        :raises RuntimeError: the command fails; the message contains its output
        """
        code = f'import sys; from placement.cmd import {module} as m; sys.exit(m.main())'
        completed = subprocess.run(
            [release.python, '-c', code, f'--config-file={self.configuration}', *arguments],
            env=_kept() | self.environment(release),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if completed.returncode > highest:
            raise RuntimeError(f'{module} {arguments}: {completed.returncode}\n{completed.stdout}')
        return completed.stdout

    def environment(self, release: equivalence.Release) -> dict[str, str]:
        """Return the environment variables that the processes of a release need."""
        path = '' if release is equivalence.REFERENCE else commands.SEARCH_PATH
        return {'OS_PLACEMENT_CONFIG_DIR': str(self.folder), 'PYTHONPATH': path}


class Machine:
    """A machine with one uWSGI server on a fixed port, which runs either release."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.port = with_database.free_port()
        self._place = place
        self._server: Worker | None = None

    def start(self, release: equivalence.Release) -> None:
        """Start a release and wait until it responds; check which release responds."""
        run = self._place.folder / self.name
        (run / 'metrics').mkdir(parents=True, exist_ok=True)
        virtualenv = Path(release.python).parents[1]
        values = {
            '/opt/placement': str(virtualenv),
            '/run/placement': str(run),
            'placement:www-data': ':'.join(stack.user()),
            '127.0.0.1:8778': f'127.0.0.1:{self.port}',
            'processes = 4': 'processes = 2',
            _HEADER: connection_header(release),
        }
        ini = run / 'placement.ini'
        ini.write_text(files.read('uwsgi/placement.ini', values))
        # uWSGI imports modules from the current directory.
        command = [str(virtualenv / 'bin' / 'uwsgi'), f'--chdir={run}', f'--ini={ini}']
        settings = self._place.environment(release)
        try:
            self._server = Worker(
                self._place.url, lambda _: command, settings, run / 'log', self.port
            )
            wait_until(lambda: self._get('/') == 200, f'{release.name} does not respond')
        except AssertionError as error:
            raise RuntimeError(
                f'{self.name}: {error}\n{(run / "log").read_text()[-4000:]}'
            ) from None
        healthy = self._get('/healthcheck') == 200
        if healthy != (release is equivalence.THIS):
            raise RuntimeError(f'{self.name} does not run the release {release.name}')

    def stop(self) -> None:
        """Stop the server, as `systemctl stop` does."""
        if self._server is not None:
            self._server.stop()

    def _get(self, path: str) -> int:
        try:
            url = f'http://127.0.0.1:{self.port}{PREFIX}{path}'
            return requests.get(url, timeout=300).status_code
        except requests.ConnectionError:
            return 0


def main() -> int:
    """Execute the runbook and print the figures; return 1 if a request failed."""
    with (
        tempfile.TemporaryDirectory(prefix='placement-swap-') as name,
        with_database.server('mariadb') as admin,
    ):
        return swap(Place(Path(name), old_database(sa.make_url(admin))))


def swap(place: Place) -> int:
    """Execute the runbook with clients; return 1 if something is wrong."""
    configure(place)
    place.run(equivalence.REFERENCE, 'manage', 'db', 'sync')
    machines = [Machine('api1', place), Machine('api2', place)]
    wrong: list[str] = []
    with contextlib.ExitStack() as running:
        for machine in machines:
            running.callback(machine.stop)
            machine.start(equivalence.REFERENCE)
        proxy, url = running.enter_context(balancer(place, machines))
        create_providers(url)
        granted: set[str] = set()
        for release in (equivalence.THIS, equivalence.REFERENCE):
            traffic = Traffic(url)
            with traffic.running():
                traffic.finish_phase('before')
                if release is equivalence.THIS:
                    wrong += prepare(place)
                for machine in machines:
                    replace(machine, release, proxy)
                    traffic.finish_phase(f'{release.name} on {machine.name}')
            granted |= {uuid for uuid, status in traffic.consumers.items() if status == 204}
            wrong += traffic.failures
            wrong += incomplete(traffic, granted, place, machines)
    print('\n'.join(f'WRONG: {text}' for text in wrong) or f'{len(granted)} claims are present')
    return int(bool(wrong))


class Traffic(storm.Storm):
    """Clients that search, claim, and read; half of them release each claim.

    :param url: the URL of Placement behind the load balancer
    """

    def __init__(self, url: str) -> None:
        super().__init__(self._cycle, len(PROVIDERS) * 2)
        self._clients_of = [equivalence.Client(url) for _ in range(len(PROVIDERS) * 2)]
        self.failures: list[str] = []

    def finish_phase(self, name: str) -> None:
        """Wait for a number of further claims and releases, and print the results until then."""
        for status in (204, RELEASED):
            self.wait_for(status, PER_PHASE)
        print(f'{name}: {dict(sorted(self.statuses.items()))}', flush=True)

    def _cycle(self, number: int, consumer: str) -> int:
        path = f'/allocations/{consumer}'
        body = testcase.claim({PROVIDERS[number // 2]: 1})
        self._send(number, 'GET', '/allocation_candidates?resources=VCPU:1&limit=1')
        status = self._send(number, 'PUT', path, body)
        if status == 204:
            self._send(number, 'GET', path)
            if number % 2 and self._send(number, 'DELETE', path) == 204:
                return RELEASED
        return status

    def _send(self, number: int, method: str, path: str, body: Any = None) -> int:
        """Send a request and return its status; only generation conflicts are no failures."""
        try:
            response = self._clients_of[number].send(method, path, equivalence.LATEST, body)
        except requests.RequestException as error:
            self.failures.append(f'{method} {path}: {error!r}')
            return storm.NO_RESPONSE
        if not (response.ok or 'placement.concurrent_update' in response.text):
            self.failures.append(f'{method} {path}: {response.status_code} {response.text}')
        return int(response.status_code)


def create_providers(url: str) -> None:
    """Create providers that never get full. Therefore 409 is always a generation conflict."""
    client = equivalence.Client(url)
    inventories = {'resource_provider_generation': 0, 'inventories': {'VCPU': {'total': 10**6}}}
    for provider in PROVIDERS:
        for method, path, body in (
            ('POST', '', {'uuid': provider, 'name': provider}),
            ('PUT', f'/{provider}/inventories', inventories),
        ):
            path = f'/resource_providers{path}'
            client.send(method, path, equivalence.LATEST, body).raise_for_status()


def old_database(admin: sa.URL) -> str:
    """Create a database with three-byte characters, as in old guides; return its URL."""
    url = sa.make_url(servers.create_database(admin, 'placement'))
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        conn.exec_driver_sql('ALTER DATABASE placement CHARACTER SET utf8')
    return url.update_query_dict({'charset': 'utf8'}).render_as_string(hide_password=False)


def configure(place: Place) -> None:
    """Write a placement.conf that sets every option that has a default."""
    lines = []
    for section, options in opts.list_opts():
        if section not in SECTIONS:
            continue
        lines.append(f'[{section}]')
        values = {one.dest: one.default for one in options if one.default not in (None, '')}
        if section == 'placement_database':
            values['connection'] = place.url
        if section == 'api':
            values['auth_strategy'] = 'noauth2'
        lines += [f'{name} = {value}' for name, value in values.items()]
    place.configuration.write_text('\n'.join(lines) + '\n')


def prepare(place: Place) -> list[str]:
    """Execute the steps of the preparation; return what they changed in the database."""
    before = described(place)
    place.run(equivalence.THIS, 'status', 'upgrade', 'check')
    # Status 1 is a warning: noauth2 is for tests only.
    report = place.run(equivalence.THIS, 'status', 'preflight', '--format=json', highest=1)
    checks = json.loads(report)['checks']
    warnings = [one['name'] for one in checks if one['result'] == 'warning']
    print(f'preflight: {len(checks)} checks, no failure, warnings: {", ".join(warnings) or "none"}')
    print(f'db version: {place.run(equivalence.THIS, "manage", "db", "version").strip()}')
    place.run(equivalence.THIS, 'manage', 'db', 'sync')
    return [] if described(place) == before else ['db sync changed the schema']


def described(place: Place) -> tuple[schema.Description, str]:
    """Return the schema of the database and its revision."""
    engine = sa.create_engine(place.url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        revision = conn.exec_driver_sql('SELECT version_num FROM alembic_version').scalar_one()
    return schema.describe(engine), str(revision)


def connection_header(release: equivalence.Release) -> str:
    """Return the option of uWSGI that HAProxy requires; for the old release, from the runbook."""
    if release is equivalence.THIS:
        return _HEADER
    return ''.join(_ADDED_OPTION.findall(RUNBOOK.read_text()))


@contextlib.contextmanager
def balancer(place: Place, machines: Sequence[Machine]) -> Iterator[tuple[haproxy.HAProxy, str]]:
    """Run HAProxy with the file in etc/, and the health check of the runbook, without TLS."""
    port = with_database.free_port()
    values = {
        ':443 ssl crt /etc/placement/tls/placement.crt': f'127.0.0.1:{port}',
        '/run/haproxy': str(place.folder),
        'log /dev/log local0': 'log stdout format raw local0',
        '    user haproxy\n    group haproxy\n': '',
        # The reference release has no health check.
        '/placement/healthcheck': '/placement/',
        '    server api3 192.0.2.13:8778\n': '',
        '    server api3 192.0.2.13:8778 track placement/api3 maxconn 1\n': '',
        **{f'192.0.2.1{n}:8778': f'127.0.0.1:{m.port}' for n, m in enumerate(machines, 1)},
    }
    configuration = place.folder / 'haproxy.cfg'
    configuration.write_text(files.read('haproxy/placement.cfg', values))
    command = [*commands.unprivileged(), commands.program('haproxy'), '-db', '-f']
    log = place.folder / 'haproxy.log'
    server = Worker('', lambda _: [*command, str(configuration)], log=log, port=port)
    try:
        proxy = haproxy.HAProxy(place.folder / 'admin.sock')
        wait_until((place.folder / 'admin.sock').exists, 'HAProxy does not listen')
        proxy.wait_until_up(len(machines))
        yield proxy, f'http://127.0.0.1:{port}{PREFIX}'
    finally:
        server.stop()


def replace(machine: Machine, release: equivalence.Release, proxy: haproxy.HAProxy) -> None:
    """Replace the release of a machine with the commands of the runbook."""
    drain, ready = (
        command.replace('api1', machine.name)
        for command in _HAPROXY_COMMAND.findall(RUNBOOK.read_text())
    )
    index = int(machine.name.removeprefix('api')) - 1
    proxy.command(drain)
    wait_until(lambda: proxy.sessions()[index] == 0, f'{machine.name} has sessions')
    machine.stop()
    machine.start(release)
    proxy.command(ready)
    wait_until(lambda: proxy.states()[index] == 'UP', f'{machine.name} is not up')


def incomplete(
    traffic: Traffic, granted: Collection[str], place: Place, machines: Sequence[Machine]
) -> list[str]:
    """Return the problems of the data, from the tables and from the responses of each machine."""
    engine = sa.create_engine(place.url, poolclass=sa.NullPool)
    lost, _ = traffic.compare(engine)
    problems = audit.problems(engine) + [f'lost: {consumer}' for consumer in sorted(lost)]
    for machine in machines:
        client = equivalence.Client(f'http://127.0.0.1:{machine.port}{PREFIX}')
        used = 0
        for provider in PROVIDERS:
            path = f'/resource_providers/{provider}/usages'
            used += client.send('GET', path, equivalence.LATEST).json()['usages']['VCPU']
        if used != len(granted):
            problems.append(f'{machine.name} shows usage {used} of {len(granted)} claims')
    return problems


def _kept() -> dict[str, str]:
    """Return the environment variables without those of Python and of the service."""
    return {k: v for k, v in os.environ.items() if not k.startswith(('OS_', 'PYTHON'))}


if __name__ == '__main__':
    sys.exit(main())
