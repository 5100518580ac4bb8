"""A private memcached on the loopback interface, with or without TLS and SASL."""

import contextlib
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import sys
import time

import fixtures

from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST

USER = 'placement'
PASSWORD = 'hush-memcached'

_SASL = """
mech_list: plain
pwcheck_method: auxprop
auxprop_plugin: sasldb
sasldb_path: {folder}/users
"""

# Adds a user to the database of SASL, as the program saslpasswd2 does, which is in another package.
_ADD_USER = """
import ctypes, socket, sys
user, password = (text.encode() for text in sys.argv[1:])
sasl = ctypes.CDLL('libsasl2.so.2')
connection = ctypes.c_void_p()
host = socket.gethostname().encode()
assert sasl.sasl_server_init(None, b'memcached') == 0
assert sasl.sasl_server_new(
    b'memcached', host, host, None, None, None, 0, ctypes.byref(connection)) == 0
assert sasl.sasl_setpass(connection, user, password, len(password), None, 0, 1) == 0
"""


class Memcached(fixtures.Fixture):
    """Starts memcached.

    :param tls: whether clients must use TLS; `authority` is then the file with the certificate
    :param sasl: whether clients must authenticate as `USER` with `PASSWORD`
    :param unix: whether the server listens on a Unix socket
    :param arguments: other arguments of memcached
    :ivar address: the value for the option `memcached_servers`
    """

    def __init__(
        self, *arguments: str, tls: bool = False, sasl: bool = False, unix: bool = False
    ) -> None:
        super().__init__()
        self._arguments = list(arguments)
        self._tls = tls
        self._sasl = sasl
        self._unix = unix
        self._environment = dict(os.environ)
        self.process: subprocess.Popen[bytes] | None = None

    def _setUp(self) -> None:
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        user = pwd.getpwuid(os.getuid()).pw_name
        self._command = [
            commands.program('memcached'),
            '-u',
            user,
            *self._listen(),
            *self._arguments,
        ]
        if self._tls:
            self._command += self._certificate()
        if self._sasl:
            self._command.append('-S')
            self._add_user()
        self.addCleanup(self.kill)
        self.start()

    def _listen(self) -> list[str]:
        if self._unix:
            self.address = str(self.folder / 'socket')
            return ['-s', self.address]
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        self.address = f'127.0.0.1:{port}'
        return ['-l', '127.0.0.1', '-p', str(port), '-U', '0']

    def _certificate(self) -> list[str]:
        self.authority, key = (self.folder / name for name in ('crt', 'key'))
        subprocess.run(
            (
                *(commands.program('openssl'), 'req', '-x509', '-nodes', '-days', '2'),
                *('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'),
                *('-subj', '/CN=memcached', '-addext', 'subjectAltName=IP:127.0.0.1'),
                *('-out', self.authority, '-keyout', key),
            ),
            check=True,
            capture_output=True,
        )
        return ['-Z', '-o', f'ssl_chain_cert={self.authority},ssl_key={key}']

    def _add_user(self) -> None:
        (self.folder / 'memcached.conf').write_text(_SASL.format(folder=self.folder))
        self._environment['SASL_CONF_PATH'] = str(self.folder)
        command = [sys.executable, '-c', _ADD_USER, USER, PASSWORD]
        subprocess.run(command, env=self._environment, check=True, capture_output=True)

    def options(self) -> dict[str, object]:
        """Return the options with which a client can use the server, except its address."""
        values: dict[str, object] = {}
        if self._tls:
            values |= {'memcache_tls_enabled': True, 'memcache_tls_cafile': str(self.authority)}
        if self._sasl:
            values |= {
                'memcache_sasl_enabled': True,
                'memcache_username': USER,
                'memcache_password': PASSWORD,
            }
        return values

    def start(self) -> None:
        """Start the server, also again after `kill`."""
        self.process = subprocess.Popen(self._command, env=self._environment)
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), self.connect():
                return
            time.sleep(0.05)
        raise AssertionError('memcached did not start')

    def connect(self) -> socket.socket:
        """Return a connection to the server, without TLS."""
        if self._unix:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.settimeout(LONGEST)
                connection.connect(self.address)
            except OSError:
                connection.close()
                raise
            return connection
        host, _, port = self.address.partition(':')
        return socket.create_connection((host, int(port)), LONGEST)

    def counters(self) -> dict[str, int]:
        """Return the counters of the server, which must not require TLS or SASL."""
        with self.connect() as connection:
            connection.sendall(b'stats\r\nquit\r\n')
            with connection.makefile('r') as response:
                rows = [line.split() for line in response]
        return {row[1]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdecimal()}

    def kill(self) -> None:
        """Kill the server; its connections end, and new ones are refused."""
        self.process.kill()
        self.process.wait()

    def suspend(self) -> None:
        """Suspend the server: the system accepts connections, but nothing responds."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
