"""Whether the connections to other hosts use TLS and verify the certificate."""

import ipaddress
import ssl
from typing import Any
from urllib import parse

import sqlalchemy as sa

from placement.admin.preflight.model import Verdict, ok, warning

_LOCAL_NAMES = frozenset({'localhost', 'localhost.localdomain', 'localhost6', 'ip6-localhost'})
_VERIFYING = frozenset({'verify_ca', 'verify_identity', 'verify-ca', 'verify-full'})
# The parameters with which a driver uses TLS and verifies the certificate and its name.
_PARAMETERS = {
    'pymysql': 'ssl_ca=FILE',
    'mysqldb': 'ssl_mode=VERIFY_IDENTITY&ssl_ca=FILE',
    'psycopg': 'sslmode=verify-full&sslrootcert=FILE',
    'psycopg2': 'sslmode=verify-full&sslrootcert=FILE',
}


def is_local(host: str | None) -> bool:
    """Return whether a host is the loopback interface or a Unix socket.

    :param host: a name, an address, or a path; None for the default of a driver, which is local
    """
    if not host or host.startswith(('/', '@')) or host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip('[]')).is_loopback
    except ValueError:
        return False


def is_local_database(url: sa.URL) -> bool:
    """Return whether all hosts in the URL of a database are local."""
    arguments = _arguments(url)
    if arguments.get('unix_socket'):
        return True
    # libpq accepts several hosts, and connects to `hostaddr` if it is set.
    hosts = str(arguments.get('hostaddr') or arguments.get('host') or '')
    return all(is_local(host) for host in hosts.split(','))


def _arguments(url: sa.URL) -> dict[str, Any]:
    """Return the arguments of the driver, which the host and the parameters of the URL set."""
    dialect: Any = url.get_dialect()
    return dict(dialect().create_connect_args(url)[1])


def verifies(url: sa.URL, conn: sa.Connection) -> bool:
    """Return whether the driver has verified the certificate of an encrypted connection."""
    context = getattr(conn.connection.dbapi_connection, 'ctx', None)
    if isinstance(context, ssl.SSLContext):
        # PyMySQL has several parameters, some of which override others.
        return context.verify_mode is not ssl.CERT_NONE
    arguments = _arguments(url)
    mode = arguments.get('ssl_mode') or arguments.get('sslmode') or ''
    return str(mode).lower() in _VERIFYING


def judge_database(url: sa.URL, detail: str, is_encrypted: bool, is_verified: bool) -> Verdict:
    """Judge the encryption of a connection to the database.

    :param detail: the description of the connection
    :param is_verified: the driver has verified the certificate of the server
    """
    if (is_encrypted and is_verified) or is_local_database(url):
        return ok(detail)
    parameters = _PARAMETERS.get(url.get_driver_name(), 'the TLS parameters of the driver')
    remedy = (
        f'Add {parameters} to the URL in [placement_database]; see "Databases" in the '
        'administrator guide.'
    )
    if not is_encrypted:
        return warning(
            f'{detail} Others can read and change the data on the network.',
            f'Configure TLS on the server. {remedy}',
        )
    return warning(
        f'{detail} The certificate is not verified, so that another host can replace the server.',
        remedy,
    )


def is_plain_url(url: str) -> bool:
    """Return whether HTTP requests to a URL leave this host without TLS."""
    parts = parse.urlsplit(url)
    return parts.scheme == 'http' and not is_local(parts.hostname)
