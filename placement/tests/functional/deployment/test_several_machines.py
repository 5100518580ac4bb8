"""Several machines in `doc/source/install/production.rst`, with addresses of this machine."""

import configparser
import contextlib
import json
import os
from pathlib import Path
import re
import subprocess
import sys
import textwrap
from unittest import mock

import requests
import sqlalchemy as sa

from placement.tests import servers, where
from placement.tests.functional.db import runbook
from placement.tests.functional.deployment import base, files, load
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST, wait_until

ROOT = files.ETC.parent
PAGE = 'install/production.rst'
TEXT = (ROOT / 'doc' / 'source' / PAGE).read_text().partition('.. _several-machines:')[2]
# The addresses of the API machines on the page and in the test.
ADDRESSES = {'192.0.2.11': '127.0.0.2', '192.0.2.12': '127.0.0.3'}
HOSTS = tuple(ADDRESSES.values())


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
        self.shell.run(tables, self.replacements(HOSTS[0]))
        self.workers = [
            self.started(self.start_machine(address, own, host)) for own, host in ADDRESSES.items()
        ]
        self.balancer = self.started(self.start_balancer())
        self.haproxy().wait_until_up(2)

    def new_shell(self, name: str) -> runbook.Shell:
        folder = self.folder / name
        folder.mkdir()
        return runbook.Shell(folder, '')

    def start_database(self) -> None:
        """Start the server with the options of the page, and create its accounts."""
        directory = str(self.folder / 'mysql')
        certificates, accounts = runbook.blocks(PAGE, 'Database with TLS')
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

    def replacements(self, host: str) -> dict[str, str]:
        """Return what to replace in a URL of the page, for a client with an address."""
        return {
            'db.example.org': f'127.0.0.1:{self.admin.port}',
            '/etc/placement/tls/database-ca.crt': str(self.authority),
            '?charset': f'?bind_address={host}&charset',
        }

    def url(self, host: str) -> sa.URL:
        """Return the URL of the page for a machine with an address."""
        url = section('placement_database')['connection']
        for old, new in self.replacements(host).items():
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
                url = f'http://{name}:{worker.port}/placement/healthcheck'
                response = requests.get(url, timeout=LONGEST)
                self.assertEqual(200, response.status_code, response.text)
                self.assertEqual('close', response.headers['Connection'])

    def check_balancer(self) -> None:
        """Clients use the certificate of the page, and HAProxy uses no disabled machine."""
        client = load.Client(self.balancer, self.servers.prefix, self.authority)
        with contextlib.closing(client):
            self.assertEqual(200, client.send('GET', '/resource_providers')[0])
        (self.folder / f'machine-{HOSTS[1]}' / 'disabled').touch()
        wait_until(lambda: self.haproxy().states() == ['UP', 'DOWN'])

    def test_the_page(self) -> None:
        self.check_accounts()
        self.check_preflight()
        self.check_addresses()
        self.check_balancer()


def text(url: sa.URL) -> str:
    return url.render_as_string(hide_password=False)
