"""What a failure of the database means, whichever engine and driver it comes from.

Is it *transient* (nobody's fault, run the transaction again), and if so, is it *rivalry* (of
somebody who was faster)? Is the database *unavailable* (answer 503)? Or is it a *bad value* (one
that no column can hold)? The numbers are those of the MySQL and MariaDB error lists, the
five-character codes those of SQLSTATE. They decide wherever an engine has them: servers write
messages in the language that `lc_messages` names, and oslo.db only understands English.
"""

import os
import pathlib
import re

from oslo_db import exception as db_exc
import sqlalchemy as sa

import placement

_MYSQL_RIVALRY = frozenset({
    1020,  # record has changed since last read
    1213,  # deadlock, or a transaction that lost certification
    1317,  # interrupted to let another node's transaction through
    1412,  # table definition has changed
})  # fmt: skip
_MYSQL_KEY_VIOLATION = frozenset({
    1022, 1062, 1586,  # duplicate key
    1216, 1217, 1451, 1452,  # missing or remaining reference
})  # fmt: skip
_MYSQL_LOCK_TIMEOUT = 1205
_MYSQL_COMMIT_FAILED = 1180
# What a storage engine says in the message of the above, and its number for it.
_DEADLOCK_DURING_COMMIT = re.compile(r'deadlock|\b149\b', re.IGNORECASE)
_MYSQL_NOT_READY = 1047  # Galera: a node without its cluster
_MYSQL_UNAVAILABLE = frozenset({
    3, 20, 28, 1021, 1026, 1030, 1114,  # disk full, in the words of various layers
    1037, 1038, 1041, 1206, 1637,  # out of memory or of another resource
    1040, 1203, 1226,  # too many connections
    _MYSQL_NOT_READY,
    _MYSQL_COMMIT_FAILED,
    1053, 1077, 1079,  # shutting down
    1290, 1792, 1836,  # read only
    1969, 3024,  # the server's own limit of time
    1927, 2002, 2003, 2006, 2013, 2055, 4031,  # connection refused or lost
})  # fmt: skip
_MYSQL_BAD_VALUE = frozenset({1264, 1265, 1267, 1270, 1271, 1292, 1300, 1366, 1406, 3988})

_MYSQL_TOO_LARGE = frozenset({1153, 1390, 1436})
# SQLite, and psycopg, which counts before it sends.
_TOO_LARGE = (
    'too many sql variables',
    'expression tree is too large',
    'string or blob too big',
    'number of parameters must be between',
)

_STATE_RIVALRY = frozenset({'40001', '40P01'})
_STATE_KEY_VIOLATION = frozenset({'23503', '23505'})
_STATE_LOCK_TIMEOUT = '55P03'
_STATE_UNAVAILABLE = ('08', '53', '57', '58', '25006', '25P03', '25P04')
_STATE_BAD_VALUE = ('22',)

_PACKAGE = f'{pathlib.Path(placement.__file__).parent}{os.sep}'

_SQLITE_UNAVAILABLE = (
    'database is locked',
    'database table is locked',
    'disk is full',
    'disk i/o error',
    'unable to open database file',
    'readonly database',
)


def is_transient(exc: Exception) -> bool:
    """Whether the transaction that failed with `exc` deserves another run."""
    if is_rivalry(exc):
        return True
    # A node without its cluster says so again and again, to every statement.
    if is_connection_lost(exc):
        return _mysql_number(exc) != _MYSQL_NOT_READY
    return _mysql_number(exc) == _MYSQL_LOCK_TIMEOUT or _sql_state(exc) == _STATE_LOCK_TIMEOUT


def is_rivalry(exc: Exception) -> bool:
    """Whether the transaction failed because another one was faster: to be run again at once.

    A duplicate key and a missing reference belong here: what was looked for before, and found
    to be free or present, came or went meanwhile.
    """
    number = _mysql_number(exc)
    if number == _MYSQL_LOCK_TIMEOUT:
        # To oslo.db this is a deadlock.
        return False
    if isinstance(exc, db_exc.DBDeadlock) or is_key_violation(exc):
        return True
    if number == _MYSQL_COMMIT_FAILED:
        return _DEADLOCK_DURING_COMMIT.search(str(_driver_error(exc))) is not None
    return number in _MYSQL_RIVALRY or _sql_state(exc) in _STATE_RIVALRY


def is_key_violation(exc: Exception) -> bool:
    """Whether a unique key or a foreign key refused a row."""
    if isinstance(exc, (db_exc.DBDuplicateEntry, db_exc.DBReferenceError)):
        return True
    return _mysql_number(exc) in _MYSQL_KEY_VIOLATION or _sql_state(exc) in _STATE_KEY_VIOLATION


def is_connection_lost(exc: Exception) -> bool:
    """Whether the connection is gone, or never came to be."""
    if isinstance(exc, db_exc.DBConnectionError):
        return True
    return isinstance(exc, sa.exc.DBAPIError) and exc.connection_invalidated


def is_unavailable(exc: Exception) -> bool:
    """Whether the database cannot answer for the moment: unreachable, full, busy, read only."""
    if isinstance(exc, (db_exc.DBNonExistentDatabase, sa.exc.TimeoutError)):
        return True
    if is_connection_lost(exc) or is_transient(exc):
        return True
    if _mysql_number(exc) in _MYSQL_UNAVAILABLE:
        return True
    if (_sql_state(exc) or '').startswith(_STATE_UNAVAILABLE):
        return True
    error = _driver_error(exc)
    if error is None or type(error).__module__ != 'sqlite3':
        return False
    return any(text in str(error).lower() for text in _SQLITE_UNAVAILABLE)


def is_bad_value(exc: Exception) -> bool:
    """Whether a value was refused that no column could hold: too long, too large, not text."""
    if isinstance(exc, db_exc.DBDataError) or isinstance(_original(exc), sa.exc.DataError):
        return True
    error = _driver_error(exc)
    if isinstance(error, (OverflowError, UnicodeError, ValueError)):
        # That is how drivers refuse a value. From our own code it would be a defect.
        return not _raised_here(error)
    if _mysql_number(exc) in _MYSQL_BAD_VALUE:
        return True
    return (_sql_state(exc) or '').startswith(_STATE_BAD_VALUE)


def is_too_large(exc: Exception) -> bool:
    """Whether a statement was refused for its size: it names more than the engine takes at once."""
    if _mysql_number(exc) in _MYSQL_TOO_LARGE or (_sql_state(exc) or '').startswith('54'):
        return True
    text = str(_driver_error(exc)).lower()
    return any(words in text for words in _TOO_LARGE)


def summary(exc: Exception) -> str:
    """What the driver says, in one line, without statement and parameters."""
    words = str(_driver_error(exc) or type(exc).__name__).split()
    return f'{type(exc).__name__}: {" ".join(words)}'


def _original(exc: BaseException | None) -> BaseException | None:
    """The error of SQLAlchemy below one of oslo.db."""
    inner = getattr(exc, 'inner_exception', None)
    return inner if isinstance(inner, BaseException) else exc


def _driver_error(exc: BaseException | None) -> BaseException | None:
    original = _original(exc)
    return getattr(original, 'orig', None) or (
        original if not isinstance(original, sa.exc.SQLAlchemyError) else None
    )


def _mysql_number(exc: Exception) -> int | None:
    error = _driver_error(exc)
    if error is None or not type(error).__module__.startswith(('pymysql', 'MySQLdb')):
        return None
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else None


def _sql_state(exc: Exception) -> str | None:
    error = _driver_error(exc)
    return getattr(error, 'sqlstate', None) or getattr(error, 'pgcode', None)


def _raised_here(exc: BaseException) -> bool:
    """Whether an exception was raised by code of this package, and not by a driver."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)
