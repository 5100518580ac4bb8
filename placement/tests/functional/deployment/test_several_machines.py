"""The page `doc/source/install/several-machines.rst`, with several addresses of this machine."""

import configparser
import contextlib
import json
import os
from pathlib import Path
import re
import socket
import subprocess
import sys
import textwrap
from unittest import mock

import requests
import sqlalchemy as sa
from testtools import content

from placement.tests import servers, where
from placement.tests.functional.db import runbook
from placement.tests.functional.deployment import base, files, haproxy, load
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST, wait_until

ROOT = files.ETC.parent
PAGE = 'install/several-machines.rst'
TEXT = (ROOT / 'doc' / 'source' / PAGE).read_text()
# The addresses of the API machines on the page and in the test.
ADDRESSES = {'192.0.2.11': '127.0.0.2', '192.0.2.12': '127.0.0.3'}
HOSTS = tuple(ADDRESSES.values())
CLIENTS = 2


def section(name: str) -> dict[str, str]:
    """Return the options of a section of the configuration files on the page."""
    parsed = configparser.ConfigParser(interpolation=None)
    for block in re.findall(r'^\.\. code-block:: ini\n\n((?:    .*\n|\n)+)', TEXT, re.MULTILINE):
        parsed.read_string(textwrap.dedent(block))
    return dict(parsed[name])


@where.at_night('The machines take minutes.')
class SeveralMachinesTest(base.TestCase):
    """Two API machines, HAProxy with TLS, and a database server that accepts only TLS."""

    def setUp(self) -> None:
        super().setUp()
        for program in ('openssl', 'mariadb', 'mariadbd', 'uwsgi', 'haproxy'):
            commands.program(program)
        # The database server, which runs as another user, must be able to enter the directories.
        for folder in (self.folder, self.folder.parent):
            folder.chmod(0o711)
        self.stack()
        self.shell = self.new_shell('shell')
        (certificates,) = runbook.blocks(PAGE, 'Certificates')
        # The clients of the test connect to addresses.
        self.shell.run(certificates, {'DNS:$name': 'DNS:$name,IP:127.0.0.1'})
        self.authority = self.shell.folder / 'ca.crt'
        self.start_database()
        tables, address, _ = runbook.blocks(PAGE, 'API machines')
        self.shell.run(tables, self.database(HOSTS[0]))
        self.workers = [
            self.started(self.start_machine(address, own, host)) for own, host in ADDRESSES.items()
        ]
        self.balancer = self.started(self.start_balancer())
        self.proxy.wait_until_up(2)

    def new_shell(self, name: str) -> runbook.Shell:
        folder = self.folder / name
        folder.mkdir()
        return runbook.Shell(folder, '')

    def start_database(self) -> None:
        """Start the server with the options of the page, and create its accounts."""
        directory = str(self.folder / 'mysql')
        certificates, accounts = runbook.blocks(PAGE, 'Database')
        owner = {} if os.getuid() == 0 else {'-o mysql -g mysql ': ''}
        self.shell.run(certificates, {'/etc/mysql/tls': directory, **owner})
        options = section('mariadb')
        del options['bind_address']
        required = options.pop('require_secure_transport')
        arguments = [
            f'--{name}={value.replace("/etc/mysql/tls", directory)}'
            for name, value in options.items()
        ]
        running = contextlib.ExitStack()
        self.addCleanup(running.close)
        server = machines.tool('with_database').server('mariadb', arguments)
        self.admin = sa.make_url(running.enter_context(server))
        with mock.patch.dict(os.environ, {servers.ADMIN_URL: text(self.admin)}):
            self.new_shell('accounts').run(accounts, ADDRESSES)
        # The tool that starts the server does not use TLS.
        servers.execute(self.admin, f'SET GLOBAL require_secure_transport = {required}')
        self.admin = self.admin.update_query_dict({'ssl_ca': str(self.authority)})

    def database(self, host: str) -> dict[str, str]:
        """Return what to replace in a URL of the page, for a client with an address."""
        return {
            'db.example.org': f'127.0.0.1:{self.admin.port}',
            '/etc/placement/tls/database-ca.crt': str(self.authority),
            '?charset': f'?bind_address={host}&charset',
        }

    def url(self, host: str) -> sa.URL:
        """Return the URL of the page for a machine with an address."""
        url = section('placement_database')['connection']
        for old, new in self.database(host).items():
            url = url.replace(old, new)
        return sa.make_url(url)

    def start_machine(self, address: str, own: str, host: str) -> machines.Worker:
        """Start uWSGI with the configuration of the page.

        :param address: the commands of the page that add the address to the file of uWSGI
        :param own: the address of the machine on the page
        :param host: the address of the machine in the test
        """
        name = f'machine-{host}'
        file = self.folder / f'{name}.ini'
        file.write_text(files.read('uwsgi/placement.ini', {}))
        first = next(iter(ADDRESSES))
        self.shell.run(
            address.replace(first, own), {own: host, '/etc/placement/uwsgi.ini': str(file)}
        )
        health = section('healthcheck')
        disabled = Path(health['disable_by_file_path'])
        self.assertIn(f'touch {disabled}', TEXT)
        return self.servers.uwsgi(
            name,
            file=str(file),
            settings={
                'OS_PLACEMENT_DATABASE__CONNECTION': text(self.url(host)),
                'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'false',
                'OS_HEALTHCHECK__BACKENDS': health['backends'],
                'OS_HEALTHCHECK__DISABLE_BY_FILE_PATH': str(self.folder / name / disabled.name),
            },
        )

    def start_balancer(self) -> machines.Worker:
        """Start HAProxy with the configuration of the page."""
        (block,) = runbook.blocks(PAGE, 'Load balancer')
        configuration = self.folder / 'haproxy.cfg'
        replaced = {
            '/etc/placement/tls': str(self.servers.certificate.parent),
            '/usr/local/src/placement': str(ROOT),
            '/etc/haproxy/haproxy.cfg': str(configuration),
        }
        self.shell.run(block, replaced)
        lines = files.read('haproxy/placement.cfg', {}).splitlines()
        self.assertEqual(
            [line for line in lines if ' api3 ' not in line],
            configuration.read_text().splitlines(),
        )
        return self.servers.haproxy(*self.workers, hosts=HOSTS)

    @property
    def proxy(self) -> haproxy.HAProxy:
        return self.haproxy()

    def client(self, server: machines.Worker) -> load.Client:
        """Return a client that trusts the certificate authority of the page."""
        client = load.Client(server, self.servers.prefix, self.authority)
        self.addCleanup(client.close)
        return client

    def assertRefused(self, reason: str, url: sa.URL, statement: str = 'SELECT 1') -> None:
        error = self.assertRaises(sa.exc.DBAPIError, servers.execute, url, statement)
        self.assertIn(reason, str(error))

    def check_accounts(self) -> None:
        """The service has few privileges, and only from its machine and with TLS."""
        url = self.url(HOSTS[0])
        servers.execute(url, 'SELECT 1 FROM traits')
        self.assertRefused('denied', url, 'DROP TABLE traits')
        without_tls = {'ssl_disabled': 'true', 'bind_address': HOSTS[0]}
        self.assertRefused('Access denied', url.set(query=without_tls))
        self.assertRefused('is not allowed to connect', self.url('127.0.0.4'))
        self.assertRefused('Access denied', self.admin.set(query={'ssl_disabled': 'true'}))

    def check_preflight(self) -> None:
        """The privileges of the page are sufficient for the service."""
        completed = subprocess.run(
            (sys.executable, '-m', 'placement.cmd.status', 'preflight', '--format', 'json'),
            env={
                **os.environ,
                'OS_API__AUTH_STRATEGY': 'noauth2',
                'OS_PLACEMENT_DATABASE__CONNECTION': text(self.url(HOSTS[0])),
            },
            capture_output=True,
            text=True,
        )
        checks = json.loads(completed.stdout)['checks']
        results = {one['name']: one['result'] for one in checks if 'Database' in one['name']}
        self.assertGreater(len(results), 3)
        self.assertEqual({'ok'}, set(results.values()), completed.stdout)

    def check_addresses(self) -> None:
        """Each uWSGI listens on both addresses, and announces that it closes the connection."""
        for worker, host in zip(self.workers, HOSTS, strict=True):
            for name in ('127.0.0.1', host):
                response = get(name, worker, '/healthcheck')
                self.assertEqual(200, response.status_code, response.text)
                self.assertEqual('close', response.headers['Connection'])

    def check_restarts(self) -> None:
        """No request fails while one machine restarts after the other."""
        load.create_provider(self.client(self.balancer))
        clients = [self.client(self.balancer) for _ in range(CLIENTS)]
        with load.Load(clients) as running:
            running.wait_for_more()
            self.proxy.command('set server placement/api1 state drain')
            self.restart(0, running)
            self.proxy.command('set server placement/api1 state ready')
            self.proxy.wait_until_up(2)
            running.wait_for_more()
            disabled = self.folder / f'machine-{HOSTS[1]}' / 'disabled'
            disabled.touch()
            wait_until(lambda: self.proxy.states() == ['UP', 'DOWN'])
            # systemd deletes the file when the service stops.
            self.restart(1, running, disabled)
            self.proxy.wait_until_up(2)
            running.wait_for_more()
        self.addDetail('results', content.text_content(repr(running.results)))
        self.assertTrue(load.succeeded(running.results), running.results)

    def restart(self, number: int, running: load.Load, *deleted: Path) -> None:
        """Restart a machine that receives no requests, and wait until it responds."""
        wait_until(lambda: self.proxy.sessions()[number] == 0)
        worker = self.workers[number]
        worker.stop()
        for path in deleted:
            path.unlink()
        running.wait_for_more()
        worker.start()
        self.assertEqual(200, get(HOSTS[number], worker, '/').status_code)

    def check_failures(self) -> None:
        """HAProxy removes a machine that cannot use the database, and replaces one that is dead."""
        account = f"'placement'@'{HOSTS[0]}'"
        servers.execute(self.admin, f'ALTER USER {account} ACCOUNT LOCK')
        wait_until(lambda: self.proxy.states() == ['DOWN', 'UP'])
        self.assertEqual([201] * 10, self.write('LOCKED'))
        servers.execute(self.admin, f'ALTER USER {account} ACCOUNT UNLOCK')
        self.proxy.wait_until_up(2)
        self.workers[0].kill()
        # The port is free when the last child process has ended.
        wait_until(lambda: not listens(HOSTS[0], self.workers[0].port))
        self.assertEqual([201] * 10, self.write('KILLED'))

    def write(self, name: str) -> list[int]:
        """Create traits through HAProxy, and return the statuses."""
        client = self.client(self.balancer)
        return [client.send('PUT', f'/traits/CUSTOM_{name}_{n}')[0] for n in range(10)]

    def test_the_page(self) -> None:
        self.check_accounts()
        self.check_preflight()
        self.check_addresses()
        self.check_restarts()
        self.check_failures()


def get(host: str, worker: machines.Worker, path: str) -> requests.Response:
    """Send a request to uWSGI directly."""
    return requests.get(f'http://{host}:{worker.port}/placement{path}', timeout=LONGEST)


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def text(url: sa.URL) -> str:
    return url.render_as_string(hide_password=False)
