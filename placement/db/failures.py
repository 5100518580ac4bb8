"""What a failure of the database means, whichever engine and driver it comes from.

Three questions: is it *transient* (nobody's fault, run the transaction again), is the database
*unavailable* (answer 503), or is it a *bad value* (one that no column can hold)? The numbers are
those of the MySQL and MariaDB error lists, the five-character codes those of SQLSTATE.
"""

from oslo_db import exception as db_exc
import sqlalchemy as sa

_MYSQL_TRANSIENT = frozenset(
    {
        1020,  # record has changed since last read
        1205,  # lock wait timeout
        1213,  # deadlock, or a transaction that lost certification
        1180,  # error during commit: certification, under another number
        1317,  # interrupted to let another node's transaction through
        1412,  # table definition has changed
    }
)
_MYSQL_UNAVAILABLE = frozenset({
    3, 20, 28, 1021, 1026, 1030, 1114,  # disk full, in the words of various layers
    1040, 1203,  # too many connections
    1047,  # Galera: node not ready
    1053, 1077, 1079,  # shutting down
    1290, 1792, 1836,  # read only
    1927, 2002, 2003, 2006, 2013, 2055, 4031,  # connection refused or lost
})  # fmt: skip
_MYSQL_BAD_VALUE = frozenset({1264, 1265, 1267, 1292, 1300, 1366, 1406, 3988})

_STATE_TRANSIENT = frozenset({'40001', '40P01', '55P03'})
_STATE_UNAVAILABLE = ('08', '53', '57', '58', '25006')
_STATE_BAD_VALUE = ('22',)

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
    if isinstance(exc, (db_exc.DBDeadlock, db_exc.DBDuplicateEntry, db_exc.DBReferenceError)):
        return True
    if is_connection_lost(exc):
        return not _could_not_connect(exc)
    return _mysql_number(exc) in _MYSQL_TRANSIENT or _sql_state(exc) in _STATE_TRANSIENT


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
    return _is_sqlite(exc) and any(text in str(exc).lower() for text in _SQLITE_UNAVAILABLE)


def is_bad_value(exc: Exception) -> bool:
    """Whether a value was refused that no column could hold: too long, too large, not text."""
    if isinstance(exc, db_exc.DBDataError) or isinstance(_original(exc), sa.exc.DataError):
        return True
    if isinstance(_driver_error(exc), (OverflowError, UnicodeError, ValueError)):
        return True
    if _mysql_number(exc) in _MYSQL_BAD_VALUE:
        return True
    return (_sql_state(exc) or '').startswith(_STATE_BAD_VALUE)


def summary(exc: Exception) -> str:
    """What the driver says, without statement and parameters."""
    return f'{type(exc).__name__}: {_driver_error(exc) or type(exc).__name__}'


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


def _is_sqlite(exc: Exception) -> bool:
    error = _driver_error(exc)
    return error is not None and type(error).__module__ == 'sqlite3'


def _could_not_connect(exc: Exception) -> bool:
    """A server that is not there is told at once; one that dropped us is asked again."""
    if _mysql_number(exc) in (2002, 2003):
        return True
    error = _driver_error(exc)
    text = str(error).lower()
    return 'connection refused' in text or 'connection failed' in text
