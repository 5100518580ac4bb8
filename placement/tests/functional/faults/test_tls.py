"""TLS to the database server, with the URLs of doc/source/admin/databases.rst and a private CA."""

import os
from pathlib import Path
import re
import shutil
import subprocess
import tempfile
import unittest

from oslotest import base
import sqlalchemy as sa

from placement.tests import servers, tls_guide, where
from placement.tests.functional import programs
from placement.tests.functional.faults import machines, storm
from placement.tests.waiting import wait_until

_STATEMENTS = re.compile(r'^    ((?:CREATE|GRANT) .+;)$', re.MULTILINE)
_HBA = re.compile(r'^    (hostssl .+)$', re.MULTILINE)
# The URL parameters with which a driver does not use TLS.
DISABLED = {
    'pymysql': {'ssl_disabled': 'true'},
    'mysqldb': {'ssl_mode': 'DISABLED'},
    'psycopg': {'sslmode': 'disable'},
}
# The CA and the name of a certificate: the one that clients must accept, and those that they must
# refuse.
_RIGHT = ('ours', 'IP:127.0.0.1')
_WRONG = (('other', 'IP:127.0.0.1'), ('ours', 'DNS:db.example.org'))


class Certificates:
    """A private CA, another CA, and the certificate that the server presents.

    :param engine: the engine of the server
    :ivar trusted: the certificate of the CA that the client trusts
    :ivar both: the certificates of both CAs
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine
        # The server, which runs as another user, must be able to enter the directory.
        self.folder = Path(tempfile.mkdtemp(prefix='placement-tls-'))
        self.folder.chmod(0o755)
        self.trusted, other, self.both = (
            self.folder / f'{name}.crt' for name in ('ours', 'other', 'both')
        )
        for name in ('ours', 'other'):
            self._create(name, 'basicConstraints=critical,CA:TRUE')
        self.both.write_text(self.trusted.read_text() + other.read_text())
        self.present(*_RIGHT)

    def present(self, authority: str, name: str) -> None:
        """Replace the certificate of the server; the server reads it when it starts or reloads."""
        signed_by = ('-CA', f'{authority}.crt', '-CAkey', f'{authority}.key')
        self._create('server', f'subjectAltName={name}', *signed_by)
        key = self.folder / 'server.key'
        key.chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(key, machines.tool('with_database').ENGINES[self._engine][1])

    def options(self) -> list[str]:
        """Return the options with which the server offers TLS."""
        certificate, key = (self.folder / f'server.{kind}' for kind in ('crt', 'key'))
        if self._engine == 'postgresql':
            settings = ('ssl=on', f'ssl_cert_file={certificate}', f'ssl_key_file={key}')
            return [part for setting in settings for part in ('-c', setting)]
        options = [f'--ssl-cert={certificate}', f'--ssl-key={key}']
        # When MySQL reads the certificate again, it requires that it knows the CA.
        return [*options, f'--ssl-ca={self.both}'] if self._engine == 'mysql' else options

    def _create(self, name: str, extension: str, *signed_by: str) -> None:
        command = (
            *('openssl', 'req', '-x509', '-nodes', '-days', '2', '-subj', f'/CN={name}'),
            *('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-addext', extension),
            *('-out', f'{name}.crt', '-keyout', f'{name}.key', *signed_by),
        )
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)

    def remove(self) -> None:
        shutil.rmtree(self.folder)


@where.at_night('The certificates and servers take minutes.')
@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class TlsTest(base.BaseTestCase):
    """A server that accepts the account of the service only with TLS."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        engine = machines.engine_of_run()
        if shutil.which('openssl') is None:
            raise unittest.SkipTest('openssl is not installed')
        cls.certificates = Certificates(engine)
        cls.addClassCleanup(cls.certificates.remove)
        cls.server = machines.DatabaseServer(*cls.options(engine))
        cls.addClassCleanup(cls.server.remove)
        cls.admin = sa.make_url(cls.server.create_database('placement'))
        cls.url = cls.create_account()
        synced = cls.manage(cls.url, 'db', 'sync')
        assert synced.status == 0, synced
        cls.log = cls.certificates.folder / 'log'
        cls.worker = machines.Worker(text(cls.url), log=cls.log)
        cls.addClassCleanup(cls.worker.remove)

    @classmethod
    def options(cls, engine: str) -> list[str]:
        """Return the options of the server; PostgreSQL accepts connections with TLS only."""
        if engine != 'postgresql':
            return cls.certificates.options()
        rules = cls.certificates.folder / 'pg_hba.conf'
        (line,) = _HBA.findall(tls_guide.section())
        # The administrative account of the test uses TLS, too.
        for name, value in (('placement  placement', 'all all'), ('192.0.2.0/24', '127.0.0.1/32')):
            assert name in line, line
            line = line.replace(name, value)
        rules.write_text(f'{line}\n')
        return [*cls.certificates.options(), '-c', f'hba_file={rules}']

    @classmethod
    def create_account(cls) -> sa.URL:
        """Create the account of the page, and return the URL of the page for this server."""
        driver = cls.admin.get_driver_name()
        url = cls.admin.set(query=tls_guide.verification(driver, cls.certificates.trusted))
        if url.get_backend_name() != 'mysql':
            return url
        statements = _STATEMENTS.findall(tls_guide.section())
        assert len(statements) == 2, statements
        # On this server, the account `placement` is the administrator.
        servers.execute(
            cls.admin,
            *(line.replace("'placement'@'%'", "'service'@'127.0.0.1'") for line in statements),
        )
        return url.set(username='service', password=tls_guide.url(driver).password)

    def present(self, authority: str, name: str) -> None:
        """Let the server present another certificate to new connections."""
        self.certificates.present(authority, name)
        if self.admin.get_backend_name() == 'mysql':
            mariadb = machines.engine_of_run() == 'mariadb'
            servers.execute(self.admin, 'FLUSH SSL' if mariadb else 'ALTER INSTANCE RELOAD TLS')
            return
        previous = self.loaded()
        servers.execute(self.admin, 'SELECT pg_reload_conf()')
        wait_until(lambda: self.loaded() != previous)

    def loaded(self) -> object:
        """Return the time at which PostgreSQL has read its configuration."""
        with machines.other_connection(text(self.admin)) as conn:
            return conn.exec_driver_sql('SELECT pg_conf_load_time()').scalar()

    @classmethod
    def manage(cls, url: sa.URL, *arguments: str) -> programs.Result:
        """Execute placement-manage."""
        environment = {'OS_PLACEMENT_DATABASE__CONNECTION': text(url)}
        return programs.shared().run(programs.MANAGE, arguments, environment)

    def respond(self, method: str, path: str) -> int:
        """Send a request to the service, and return the status of the response."""
        return storm.send(self.worker.port, method, path)

    def close_connections(self) -> None:
        """Let the server close the connections of the service, of which there is at least one."""
        self.assertEqual(200, self.respond('GET', '/traits'))
        machines.close_all(text(self.admin))

    def assertFails(self, url: sa.URL, verdict: str, remedy: str) -> None:
        """The command prints one line without a secret."""
        result = self.manage(url, 'db', 'version')
        self.assertEqual(1, result.status, result)
        expected = rf'\AError: The database .* {verdict}: .*\. {remedy}, or correct .*\.\n\Z'
        self.assertRegex(result.stderr, expected)
        self.assertNotIn(str(url.password), result.stderr)

    def log_of(self, *requests: tuple[int, str, str]) -> list[str]:
        """Send requests, each with its expected status, and return the warnings in the log."""
        before = len(self.log.read_text())
        for status, method, path in requests:
            self.assertEqual(status, self.respond(method, path), self.log.read_text())
        log = self.log.read_text()[before:]
        self.assertNotIn('Traceback', log)
        return [line for line in log.splitlines() if ' WARNING ' in line]

    def test_the_server_requires_tls(self) -> None:
        plain = self.url.set(query=DISABLED[self.url.get_driver_name()])
        self.assertFails(plain, 'denies access', 'Grant the privileges to the user')

    def test_commands_refuse_a_wrong_certificate(self) -> None:
        self.addCleanup(self.present, *_RIGHT)
        for wrong in _WRONG:
            self.present(*wrong)
            remedy = 'Correct the certificate of the server'
            self.assertFails(self.url, 'cannot be verified with TLS', remedy)

    def test_the_service_refuses_a_wrong_certificate(self) -> None:
        self.addCleanup(self.present, *_RIGHT)
        for wrong in _WRONG:
            self.close_connections()
            self.present(*wrong)
            refused = self.log_of((503, 'GET', '/traits'), (503, 'PUT', '/traits/CUSTOM_REFUSED'))
            self.assertEqual(2, len(refused), refused)
            for line in refused:
                self.assertRegex(line, 'Failed to connect to the database: .*certificate')
            self.present(*_RIGHT)
        for request in (
            *((201, 'PUT', '/traits/CUSTOM_NEW'), (204, 'GET', '/traits/CUSTOM_NEW')),
            (204, 'DELETE', '/traits/CUSTOM_NEW'),
        ):
            self.close_connections()
            self.log_of(request)

    def test_a_missing_certificate_of_the_ca(self) -> None:
        self.close_connections()
        trusted = self.certificates.trusted
        moved = trusted.rename(trusted.with_suffix('.moved'))
        self.addCleanup(moved.rename, trusted)
        option = r'\(\w+ in \[placement_database\]\)'
        self.assertRegex(
            self.manage(self.url, 'db', 'version').stderr,
            rf'\AError: The file {trusted} {option} cannot be read: No such file or directory\. '
            r'Correct its path or its permissions\.\n\Z',
        )
        (line,) = self.log_of((503, 'GET', '/traits'))
        self.assertIn('Failed to connect to the database: ', line)


def text(url: sa.URL) -> str:
    return url.render_as_string(hide_password=False)
