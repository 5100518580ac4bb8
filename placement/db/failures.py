"""Classify database errors in the same way for all database systems and drivers.

An error is *transient* if a retry of the transaction may succeed; a transient error is a *conflict*
if a concurrent transaction caused it. The database is *unavailable* if it cannot execute the
statements of a request at the moment (503 Service Unavailable). A *bad value* is a value that its
column cannot store.

The numbers are error numbers of MySQL and MariaDB, and the five-character codes are SQLSTATE codes.
Numbers and codes take precedence over messages: a server writes messages in the language of
`lc_messages`, and oslo.db recognizes English messages only.
"""

import logging
import os
import pathlib
import re
from typing import NoReturn

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa

import placement
from placement import exception

LOG = logging.getLogger(__name__)

_MYSQL_CONFLICT = frozenset({
    1020,  # a concurrent transaction changed the row after it was read
    1213,  # deadlock, or failed certification on a Galera cluster
    1317,  # statement interrupted because of a transaction on another Galera node
    1412,  # the definition of a table has changed
    1467,  # deadlock in which the transaction waited for the AUTO_INCREMENT of a table
    3101,  # failed certification in a replication group
})  # fmt: skip
_MYSQL_KEY_VIOLATION = frozenset({
    1022, 1062, 1586,  # duplicate key
    1216, 1217, 1451, 1452,  # referenced row is missing, or row is still referenced
})  # fmt: skip
_MYSQL_LOCK_TIMEOUT = 1205
_MYSQL_COMMIT_FAILED = 1180
# The message of error 1180 contains the error message and error number of the storage engine.
_DEADLOCK_DURING_COMMIT = re.compile(r'deadlock|\b149\b', re.IGNORECASE)
# The TLS handshake failed. With TLS, mysqlclient also reports lost connections with this number.
MYSQL_TLS_FAILED = 2026
_MYSQL_NOT_READY = 1047  # a Galera node without a connection to its cluster
_MYSQL_READ_ONLY = frozenset({1290, 1836})
_MYSQL_UNAVAILABLE = frozenset({
    3, 20, 28, 1021, 1026, 1030, 1114,  # disk full, as reported by the system, server or InnoDB
    1037, 1038, 1041, 1206, 1637,  # memory or another resource exhausted
    1040, 1203, 1226,  # too many connections
    _MYSQL_NOT_READY,
    _MYSQL_COMMIT_FAILED,
    1053, 1077, 1079, 3032, 3168,  # server is shutting down or offline
    *_MYSQL_READ_ONLY,
    1792,  # transaction is read-only
    3100, 3796, 3797, 3798, 3799, 4094,  # a replication group cannot execute the transaction
    1969, 3024,  # statement exceeded a time limit of the server
    1927, 2002, 2003, 2006, 2013, 2055, 4031,  # connection refused or lost
    MYSQL_TLS_FAILED,
})  # fmt: skip
# Limits of connections that the server rejects, with a statement that an administrator can execute.
_MYSQL_CONNECTION_LIMITS = {
    1040: "max_connections of the server (`SHOW VARIABLES LIKE 'max_connections'` prints it)",
    1203: 'max_user_connections of the server '
    "(`SHOW VARIABLES LIKE 'max_user_connections'` prints it)",
}
# A limit of an account, for its connections or its statements. The message names the limit.
_MYSQL_USER_LIMIT = 1226
_MYSQL_ACCESS_DENIED = frozenset({1044, 1045, 1142, 1143, 1227, 1698})
_MYSQL_NO_DATABASE = 1049
_MYSQL_OLD_SCHEMA = frozenset({1054, 1146})  # missing column, missing table
_MYSQL_TABLE_EXISTS = 1050
_MYSQL_BAD_VALUE = frozenset({1264, 1265, 1267, 1270, 1271, 1292, 1300, 1366, 1406, 3854, 3988})
_MYSQL_TOO_LARGE = frozenset({1153, 1390, 1436})
_STATE_TOO_LARGE = '54'
# Error messages of SQLite and of psycopg. psycopg counts the parameters of a statement before it
# sends the statement.
_MESSAGES_TOO_LARGE = (
    'too many sql variables',
    'expression tree is too large',
    'string or blob too big',
    'number of parameters must be between',
)

_STATE_CONFLICT = frozenset({'40001', '40P01'})
_STATE_KEY_VIOLATION = frozenset({'23503', '23505'})
_STATE_LOCK_TIMEOUT = '55P03'
_STATE_READ_ONLY = '25006'
_STATE_UNAVAILABLE = ('08', '53', '57', '58', _STATE_READ_ONLY, '25P03', '25P04')
_STATE_BAD_VALUE = '22'
_STATE_ACCESS_DENIED = ('28', '42501')
_STATE_NO_DATABASE = '3D000'
_STATE_OLD_SCHEMA = ('42P01', '42703')
_STATE_TABLE_EXISTS = '42P07'
# At the start of a connection, psycopg reports errors of the server without a SQLSTATE.
_MESSAGES_ACCESS_DENIED = ('authentication failed', 'no pg_hba.conf entry', 'no password supplied')
_UNKNOWN_ROLE = re.compile(r'role ".*" (does not exist|is not permitted to log in)')
_UNKNOWN_DATABASE = re.compile(r'database ".*" does not exist')
# Messages of a driver that refuses a server: with the number `MYSQL_TLS_FAILED`, and without it.
_TLS_FAILED = ('certificate', 'ssl is required', 'no such file', 'permission denied')
_UNVERIFIED = (
    'certificate verify failed',
    'server certificate for',
    'certificate file',
    'private key file',
    'ssl was required',
)
# Error messages of PostgreSQL, with the setting that limits the number of connections, and a
# statement that an administrator can execute.
_POSTGRESQL_MAX_CONNECTIONS = 'max_connections of the server (`SHOW max_connections` prints it)'
_CONNECTION_LIMITS = (
    ('too many clients', _POSTGRESQL_MAX_CONNECTIONS),
    ('remaining connection slots', _POSTGRESQL_MAX_CONNECTIONS),
    (
        'too many connections for role',
        'CONNECTION LIMIT of the role (`SELECT rolname, rolconnlimit FROM pg_roles` prints it)',
    ),
    (
        'too many connections for database',
        'CONNECTION LIMIT of the database '
        '(`SELECT datname, datconnlimit FROM pg_database` prints it)',
    ),
)
_SCHEMA_CHANGES = ('create ', 'alter ', 'drop ')
# The privileges for these statements.
_MYSQL_SCHEMA = 'CREATE, ALTER, DROP, and INDEX on the database'
_POSTGRESQL_SCHEMA = 'CREATE on the schema and ownership of the tables'
_SQLITE_OLD_SCHEMA = ('no such table', 'no such column')
_SQLITE_INACCESSIBLE = ('unable to open database file', 'readonly database')
_SQLITE_LOCKED = ('database is locked', 'database table is locked')
_SQLITE_UNAVAILABLE = (*_SQLITE_LOCKED, *_SQLITE_INACCESSIBLE, 'disk is full', 'disk i/o error')

_PACKAGE = f'{pathlib.Path(placement.__file__).parent}{os.sep}'


def _convert_tls_failure(
    error: sa.exc.OperationalError, _match: re.Match[str], _engine: str, _is_disconnect: bool
) -> NoReturn:
    """Let oslo.db convert an error that neither oslo.db nor SQLAlchemy recognizes.

    If mysqlclient uses TLS, it reports a lost connection as error 2026.
    """
    raise db_exc.DBConnectionError(error)


exc_filters.filters('mysql', sa.exc.OperationalError, r'.*\(2026,')(_convert_tls_failure)


def translate(exc: Exception) -> exception.PlacementException | None:
    """Return the exception of this service for a database error; None if the error is a defect."""
    if is_too_large(exc):
        return exception.RequestTooLarge()
    if is_bad_value(exc):
        return exception.UnstorableValue()
    if is_access_denied(exc):
        log_denial(exc)
        return exception.DatabaseUnavailable()
    if is_unavailable(exc):
        LOG.warning('The database is unavailable: %s', summary(exc))
        return exception.DatabaseUnavailable()
    return None


def raise_translated(exc: Exception) -> NoReturn:
    """Raise the exception of this service for a database error; raise a defect as it is."""
    translated = None if isinstance(exc, exception.PlacementException) else translate(exc)
    if translated is None:
        raise exc
    raise translated from exc


def log_denial(exc: Exception) -> None:
    """Log that the server rejects the user or a statement of the user."""
    LOG.error(
        'The database denies access: %s. Grant the privileges to the user, or correct '
        '[placement_database] connection.',
        reason(exc).rstrip('.'),
    )


def is_transient(exc: Exception) -> bool:
    """Whether a retry of the transaction may succeed."""
    if is_conflict(exc):
        return True
    if is_connection_lost(exc):
        # A Galera node without a connection to its cluster rejects every statement, also in a
        # retry.
        return _mysql_number(exc) != _MYSQL_NOT_READY
    return _mysql_number(exc) == _MYSQL_LOCK_TIMEOUT or _sql_state(exc) == _STATE_LOCK_TIMEOUT


def retry_reason(exc: Exception) -> str:
    """Return the reason of a transient failure, as the metrics name it."""
    if is_key_violation(exc):
        return 'key_violation'
    if is_conflict(exc):
        return 'conflict'
    return 'connection_lost' if is_connection_lost(exc) or is_read_only(exc) else 'lock_timeout'


def is_conflict(exc: Exception) -> bool:
    """Whether a concurrent transaction caused the failure.

    Key violations are conflicts, too: the transaction first checks that a unique key is unused, or
    that a referenced row exists. If the key is violated nevertheless, a concurrent transaction has
    inserted or deleted the row after that check.
    """
    number = _mysql_number(exc)
    if number == _MYSQL_LOCK_TIMEOUT:
        # oslo.db raises DBDeadlock for a lock timeout.
        return False
    if isinstance(exc, db_exc.DBDeadlock) or is_key_violation(exc):
        return True
    if number == _MYSQL_COMMIT_FAILED:
        return _DEADLOCK_DURING_COMMIT.search(str(_driver_error(exc))) is not None
    return number in _MYSQL_CONFLICT or _sql_state(exc) in _STATE_CONFLICT


def is_key_violation(exc: Exception) -> bool:
    """Whether a row violates a unique key or a foreign key."""
    if isinstance(exc, (db_exc.DBDuplicateEntry, db_exc.DBReferenceError)):
        return True
    return _mysql_number(exc) in _MYSQL_KEY_VIOLATION or _sql_state(exc) in _STATE_KEY_VIOLATION


def is_connection_lost(exc: Exception) -> bool:
    """Whether the connection was lost or could not be established."""
    if isinstance(exc, db_exc.DBConnectionError):
        return True
    return isinstance(exc, sa.exc.DBAPIError) and exc.connection_invalidated


def is_read_only(exc: Exception) -> bool:
    """Whether the server, or on PostgreSQL the transaction, is read-only."""
    return _mysql_number(exc) in _MYSQL_READ_ONLY or _sql_state(exc) == _STATE_READ_ONLY


def is_unavailable(exc: Exception) -> bool:
    """Whether the database is unreachable, out of resources, locked or read-only."""
    if isinstance(exc, (db_exc.DBNonExistentDatabase, sa.exc.TimeoutError)):
        return True
    if is_connection_lost(exc) or is_transient(exc):
        return True
    if _mysql_number(exc) in _MYSQL_UNAVAILABLE:
        return True
    if (_sql_state(exc) or '').startswith(_STATE_UNAVAILABLE):
        return True
    is_of_sqlite = type(_driver_error(exc)).__module__ == 'sqlite3'
    return is_of_sqlite and _says(exc, _SQLITE_UNAVAILABLE)


def is_bad_value(exc: Exception) -> bool:
    """Whether the error is caused by a value that its column cannot store."""
    if isinstance(exc, db_exc.DBDataError) or isinstance(_original(exc), sa.exc.DataError):
        return True
    error = _driver_error(exc)
    if isinstance(error, (OverflowError, UnicodeError, ValueError)):
        # Drivers raise these exceptions for values that they cannot send. An exception of these
        # classes that this package raised itself is a defect.
        return not _is_raised_here(error)
    if _mysql_number(exc) in _MYSQL_BAD_VALUE:
        return True
    return (_sql_state(exc) or '').startswith(_STATE_BAD_VALUE)


def is_too_large(exc: Exception) -> bool:
    """Whether the length of a statement or the number of its parameters exceeds a limit."""
    if _mysql_number(exc) in _MYSQL_TOO_LARGE:
        return True
    if (_sql_state(exc) or '').startswith(_STATE_TOO_LARGE):
        return True
    return _says(exc, _MESSAGES_TOO_LARGE)


def is_access_denied(exc: Exception) -> bool:
    """Whether the server rejects the user or the password, or the user lacks a privilege."""
    if _mysql_number(exc) in _MYSQL_ACCESS_DENIED:
        return True
    if (_sql_state(exc) or '').startswith(_STATE_ACCESS_DENIED):
        return True
    message = str(_driver_error(exc))
    return any(text in message for text in _MESSAGES_ACCESS_DENIED) or bool(
        _UNKNOWN_ROLE.search(message)
    )


def missing_schema_privileges(exc: Exception) -> str | None:
    """Return the privileges that a user needs, if the server rejects a change of the schema."""
    statement = getattr(_original(exc), 'statement', None) or ''
    if not is_access_denied(exc) or not statement.lstrip().lower().startswith(_SCHEMA_CHANGES):
        return None
    return _POSTGRESQL_SCHEMA if _mysql_number(exc) is None else _MYSQL_SCHEMA


def connection_limit(exc: Exception) -> str | None:
    """Return the setting that does not permit another connection, and how to read its value.

    :returns: None for another error
    """
    number, message = _mysql_number(exc), str(_driver_error(exc))
    if number == _MYSQL_USER_LIMIT:
        limit = re.search('max_user_connections|max_connections_per_hour', message)
        return f'{limit[0]} of the user' if limit else None
    if number in _MYSQL_CONNECTION_LIMITS:
        return _MYSQL_CONNECTION_LIMITS[number]
    return next((setting for text, setting in _CONNECTION_LIMITS if text in message), None)


def is_unverified(exc: Exception) -> bool:
    """Whether the driver refuses the certificate of the server, or a server without TLS."""
    if isinstance(exc, OSError):
        # PyMySQL cannot read the certificate of the CA. For the service and for all commands except
        # preflight, `timeouts` converts this exception.
        return True
    return _says(exc, _TLS_FAILED if _mysql_number(exc) == MYSQL_TLS_FAILED else _UNVERIFIED)


def is_unknown_database(exc: Exception) -> bool:
    """Whether the server has no database of the configured name."""
    if _mysql_number(exc) == _MYSQL_NO_DATABASE or _sql_state(exc) == _STATE_NO_DATABASE:
        return True
    return bool(_UNKNOWN_DATABASE.search(str(_driver_error(exc))))


def is_old_schema(exc: Exception) -> bool:
    """Whether a table or a column does not exist."""
    if _mysql_number(exc) in _MYSQL_OLD_SCHEMA or _sql_state(exc) in _STATE_OLD_SCHEMA:
        return True
    return _says(exc, _SQLITE_OLD_SCHEMA)


def is_new_schema(exc: Exception) -> bool:
    """Whether a table that a migration would create exists."""
    if _mysql_number(exc) == _MYSQL_TABLE_EXISTS or _sql_state(exc) == _STATE_TABLE_EXISTS:
        return True
    return _says(exc, (' already exists',))


def is_file_inaccessible(exc: Exception) -> bool:
    """Whether SQLite cannot open, create, or write to the file of the database."""
    return _says(exc, _SQLITE_INACCESSIBLE)


def is_locked(exc: Exception) -> bool:
    """Whether another process has locked an SQLite database for too long."""
    return _says(exc, _SQLITE_LOCKED)


def reason(exc: Exception) -> str:
    """Return the message of the driver or of the server in one line, without the statement."""
    error = _driver_error(exc) or exc
    # The first argument of MySQL drivers is the number of the error.
    text = error.args[1] if _mysql_number(exc) is not None and len(error.args) > 1 else error
    return ' '.join(_without_statement(error, str(text)).split())


def summary(exc: Exception) -> str:
    """Return the class and the driver's message of an error in one line, without the statement."""
    error = _driver_error(exc)
    text = _without_statement(error, str(error or type(exc).__name__))
    return f'{type(exc).__name__}: {" ".join(text.split())}'


def _without_statement(error: BaseException | None, text: str) -> str:
    """Return the text of an error; PostgreSQL adds the line of the statement to some errors."""
    diagnostics = getattr(error, 'diag', None)
    parts = (getattr(diagnostics, f'message_{part}', None) for part in ('primary', 'detail'))
    return ' '.join(part for part in parts if part) or text


def _original(exc: BaseException | None) -> BaseException | None:
    """Return the SQLAlchemy error that an oslo.db error wraps, or the error itself."""
    inner = getattr(exc, 'inner_exception', None)
    return inner if isinstance(inner, BaseException) else exc


def _driver_error(exc: BaseException | None) -> BaseException | None:
    original = _original(exc)
    return getattr(original, 'orig', None) or (
        original if not isinstance(original, sa.exc.SQLAlchemyError) else None
    )


def _says(exc: Exception, texts: tuple[str, ...]) -> bool:
    """Return whether the message of the driver contains one of the texts, in any letter case."""
    message = str(_driver_error(exc)).lower()
    return any(text in message for text in texts)


def _mysql_number(exc: Exception) -> int | None:
    error = _driver_error(exc)
    if error is None or not type(error).__module__.startswith(('pymysql', 'MySQLdb')):
        return None
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else None


def _sql_state(exc: Exception) -> str | None:
    error = _driver_error(exc)
    return getattr(error, 'sqlstate', None) or getattr(error, 'pgcode', None)


def _is_raised_here(exc: BaseException) -> bool:
    """Whether code of this package raised the exception, and not a driver."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)
