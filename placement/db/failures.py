"""Classify database errors in the same way for all database systems and drivers.

An error is *transient* if a retry of the transaction may succeed; a transient error is a *conflict*
if a concurrent transaction caused it. The database is *unavailable* if it cannot execute the
statements of a request at the moment (503 Service Unavailable). A *bad value* is a value that its
column cannot store.

The `_Signs` of each kind of error are the error numbers of MySQL and MariaDB, the first characters
of the SQLSTATE codes of PostgreSQL, and parts of messages, for errors without a code.
Numbers and codes take precedence over messages: a server writes messages in the language of
`lc_messages`, and oslo.db recognizes English messages only.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Signs:
    """What identifies a kind of error.

    :ivar numbers: error numbers of MySQL and MariaDB
    :ivar states: the first characters of SQLSTATE codes
    :ivar sqlite: parts of messages of SQLite, in lower case
    :ivar psycopg: parts of messages of psycopg, in lower case. At the start of a connection,
        psycopg reports errors of the server without a SQLSTATE
    """

    numbers: frozenset[int] = frozenset()
    states: tuple[str, ...] = ()
    sqlite: tuple[str, ...] = ()
    psycopg: tuple[str, ...] = ()


# The TLS handshake failed. With TLS, mysqlclient also reports lost connections with this number.
MYSQL_TLS_FAILED = 2026
_LOCKED = ('database is locked', 'database table is locked')
_INACCESSIBLE = ('unable to open database file', 'readonly database')
_CONFLICT = _Signs(
    frozenset({
        1020,  # a concurrent transaction changed the row after it was read
        1213,  # deadlock, or failed certification on a Galera cluster
        1317,  # statement interrupted because of a transaction on another Galera node
        1412,  # the definition of a table has changed
        1467,  # deadlock in which the transaction waited for the AUTO_INCREMENT of a table
        3101,  # failed certification in a replication group
    }),
    ('40001', '40P01'),
)  # fmt: skip
_KEY_VIOLATION = _Signs(
    frozenset({
        1022, 1062, 1586,  # duplicate key
        1216, 1217, 1451, 1452,  # referenced row is missing, or row is still referenced
    }),
    ('23503', '23505'),
)  # fmt: skip
_LOCK_TIMEOUT = _Signs(frozenset({1205}), ('55P03',))
_COMMIT_FAILED = _Signs(frozenset({1180}))
_READ_ONLY = _Signs(frozenset({1290, 1836}), ('25006',))
_NOT_READY = _Signs(frozenset({1047}))  # a Galera node without its cluster
_UNAVAILABLE = _Signs(
    frozenset({
        3, 20, 28, 1021, 1026, 1030, 1114,  # disk full, says the system, server or InnoDB
        1037, 1038, 1041, 1206, 1637,  # memory or another resource exhausted
        1040, 1203, 1226,  # too many connections
        1047,  # a Galera node without a connection to its cluster
        1180,  # COMMIT failed
        1053, 1077, 1079, 3032, 3168,  # server is shutting down or offline
        1290, 1836, 1792,  # server or transaction is read-only
        3100, 3796, 3797, 3798, 3799, 4094,  # a replication group cannot execute it
        1969, 3024,  # statement exceeded a time limit of the server
        1927, 2002, 2003, 2006, 2013, 2055, 4031,  # connection refused or lost
        MYSQL_TLS_FAILED,
    }),
    ('08', '53', '57', '58', '25006', '25P03', '25P04'),
    (*_LOCKED, *_INACCESSIBLE, 'disk is full', 'disk i/o error'),
)  # fmt: skip
_BAD_VALUE = _Signs(
    frozenset({1264, 1265, 1267, 1270, 1271, 1292, 1300, 1366, 1406, 3854, 3988}), ('22',)
)  # fmt: skip
_TOO_LARGE = _Signs(
    frozenset({1153, 1390, 1436}),
    ('54',),
    ('too many sql variables', 'expression tree is too large', 'string or blob too big'),
    # psycopg counts the parameters of a statement before it sends the statement.
    ('number of parameters must be between',),
)  # fmt: skip
_ACCESS_DENIED = _Signs(
    frozenset({1044, 1045, 1142, 1143, 1227, 1698}),
    ('28', '42501'),
    psycopg=('authentication failed', 'no pg_hba.conf entry', 'no password supplied'),
)  # fmt: skip
_UNVERIFIED = _Signs(
    psycopg=(
        'certificate verify failed',
        'server certificate for',
        'certificate file',
        'private key file',
        'ssl was required',
    )
)  # fmt: skip
_NO_DATABASE = _Signs(frozenset({1049}), ('3D000',))
# A column or a table is missing.
_OLD_SCHEMA = _Signs(
    frozenset({1054, 1146}), ('42P01', '42703'), ('no such table', 'no such column')
)  # fmt: skip
_NEW_SCHEMA = _Signs(frozenset({1050}), ('42P07',), (' already exists',))
_INACCESSIBLE_FILE = _Signs(sqlite=_INACCESSIBLE)
_LOCKED_FILE = _Signs(sqlite=_LOCKED)
# Messages with the number `MYSQL_TLS_FAILED`, if the driver refuses the server.
_TLS_FAILED = ('certificate', 'ssl is required', 'no such file', 'permission denied')
# The message of error 1180 contains the error message and error number of the storage engine.
_DEADLOCK_DURING_COMMIT = re.compile(r'deadlock|\b149\b', re.IGNORECASE)
_UNKNOWN_ROLE = re.compile(r'role ".*" (does not exist|is not permitted to log in)')
_UNKNOWN_DATABASE = re.compile(r'database ".*" does not exist')
# Limits of connections that a server of MySQL rejects, with a statement that an administrator can
# execute.
_MYSQL_CONNECTION_LIMITS = {
    1040: "max_connections of the server (`SHOW VARIABLES LIKE 'max_connections'` prints it)",
    1203: 'max_user_connections of the server '
    "(`SHOW VARIABLES LIKE 'max_user_connections'` prints it)",
}
# A limit of an account, for its connections or its statements. The message names the limit.
_MYSQL_USER_LIMIT = 1226
# The same for the error messages of PostgreSQL.
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
        return not _is(exc, _NOT_READY)
    return _is(exc, _LOCK_TIMEOUT)


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
    if _is(exc, _LOCK_TIMEOUT):
        # oslo.db raises DBDeadlock for a lock timeout.
        return False
    if isinstance(exc, db_exc.DBDeadlock) or is_key_violation(exc):
        return True
    if _is(exc, _COMMIT_FAILED):
        return _DEADLOCK_DURING_COMMIT.search(str(_driver_error(exc))) is not None
    return _is(exc, _CONFLICT)


def is_key_violation(exc: Exception) -> bool:
    """Whether a row violates a unique key or a foreign key."""
    if isinstance(exc, (db_exc.DBDuplicateEntry, db_exc.DBReferenceError)):
        return True
    return _is(exc, _KEY_VIOLATION)


def is_connection_lost(exc: Exception) -> bool:
    """Whether the connection was lost or could not be established."""
    if isinstance(exc, db_exc.DBConnectionError):
        return True
    return isinstance(exc, sa.exc.DBAPIError) and exc.connection_invalidated


def is_read_only(exc: Exception) -> bool:
    """Whether the server, or on PostgreSQL the transaction, is read-only."""
    return _is(exc, _READ_ONLY)


def is_unavailable(exc: Exception) -> bool:
    """Whether the database is unreachable, out of resources, locked or read-only."""
    if isinstance(exc, (db_exc.DBNonExistentDatabase, sa.exc.TimeoutError)):
        return True
    return is_connection_lost(exc) or is_transient(exc) or _is(exc, _UNAVAILABLE)


def is_bad_value(exc: Exception) -> bool:
    """Whether the error is caused by a value that its column cannot store."""
    if isinstance(exc, db_exc.DBDataError) or isinstance(_original(exc), sa.exc.DataError):
        return True
    error = _driver_error(exc)
    if isinstance(error, (OverflowError, UnicodeError, ValueError)):
        # Drivers raise these exceptions for values that they cannot send. An exception of these
        # classes that this package raised itself is a defect.
        return not _is_raised_here(error)
    return _is(exc, _BAD_VALUE)


def is_too_large(exc: Exception) -> bool:
    """Whether the length of a statement or the number of its parameters exceeds a limit."""
    return _is(exc, _TOO_LARGE)


def is_access_denied(exc: Exception) -> bool:
    """Whether the server rejects the user or the password, or the user lacks a privilege."""
    return _is(exc, _ACCESS_DENIED) or bool(_UNKNOWN_ROLE.search(str(_driver_error(exc))))


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
    if _mysql_number(exc) == MYSQL_TLS_FAILED:
        return _says(exc, _TLS_FAILED)
    return _is(exc, _UNVERIFIED)


def is_unknown_database(exc: Exception) -> bool:
    """Whether the server has no database of the configured name."""
    unknown = _UNKNOWN_DATABASE.search(str(_driver_error(exc)))
    return _is(exc, _NO_DATABASE) or bool(unknown)


def is_old_schema(exc: Exception) -> bool:
    """Whether a table or a column does not exist."""
    return _is(exc, _OLD_SCHEMA)


def is_new_schema(exc: Exception) -> bool:
    """Whether a table that a migration would create exists."""
    return _is(exc, _NEW_SCHEMA)


def is_file_inaccessible(exc: Exception) -> bool:
    """Whether SQLite cannot open, create, or write to the file of the database."""
    return _is(exc, _INACCESSIBLE_FILE)


def is_locked(exc: Exception) -> bool:
    """Whether another process has locked an SQLite database for too long."""
    return _is(exc, _LOCKED_FILE)


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
        None if isinstance(original, sa.exc.StatementError) else original
    )


def _is(exc: Exception, signs: _Signs) -> bool:
    """Return whether an error of the driver has one of these signs."""
    if _mysql_number(exc) in signs.numbers or (_sql_state(exc) or '').startswith(signs.states):
        return True
    driver = type(_driver_error(exc)).__module__
    return _says(exc, signs.sqlite if driver == 'sqlite3' else signs.psycopg)


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
