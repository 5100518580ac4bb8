"""The database servers on which schedules run, and the differences between them."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import re
from typing import Any

from pymysql.constants import CLIENT
import sqlalchemy as sa

from placement.tests import servers
from placement.tests.functional.races import audit


class Server:
    """Another connection to the database, and the differences between the database servers."""

    connect_args: Mapping[str, Any] = {}

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = sa.create_engine(
            engine.url,
            isolation_level='AUTOCOMMIT',
            connect_args=dict(self.connect_args),
            poolclass=sa.NullPool,
        )

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        with self._engine.connect() as self._conn:
            yield

    def execute(self, script: str) -> None:
        """Execute several statements with one round trip."""
        self._conn.exec_driver_sql(script.replace('%', '%%'))

    def read(self) -> dict[str, Sequence[Any]]:
        return audit.read(self._conn)

    def set_up(self, dbapi_connection: Any, record: Any) -> None:
        """Prepare a connection of the service."""

    def session(self, dbapi_connection: Any) -> int:
        """The number that the server gave to a connection."""
        raise NotImplementedError

    def waits_for_lock(self, session: int) -> bool:
        """Whether the statement of a connection waits for a lock of another transaction."""
        raise NotImplementedError


class MariaDB(Server):
    connect_args = {'client_flag': CLIENT.MULTI_STATEMENTS}

    def execute(self, script: str) -> None:
        cursor = self._conn.connection.cursor()
        cursor.execute(script)
        while cursor.nextset():
            pass
        cursor.close()

    def session(self, dbapi_connection: Any) -> int:
        return int(dbapi_connection.thread_id())

    def waits_for_lock(self, session: int) -> bool:
        # The tables of information_schema are copies that are renewed after 0.1 s without a reader.
        status = self._conn.exec_driver_sql('SHOW ENGINE INNODB STATUS').one()[2]
        transactions = re.split(r'^---TRANSACTION ', status, flags=re.MULTILINE)[1:]
        own = re.compile(rf'^\w+ thread id {session},', re.MULTILINE)
        return any(
            own.search(text) and re.search('^LOCK WAIT', text, re.MULTILINE)
            for text in transactions
        )


class MySQL(MariaDB):
    def waits_for_lock(self, session: int) -> bool:
        # The status of InnoDB does not list a transaction that waits before its first write. For
        # example, a subquery of an INSERT waits for the row of a project that is not committed.
        query = (
            'SELECT count(*) FROM performance_schema.data_lock_waits'
            ' JOIN performance_schema.threads ON thread_id = requesting_thread_id'
            ' WHERE processlist_id = %s'
        )
        return bool(self._conn.exec_driver_sql(query, (session,)).scalar())


class PostgreSQL(Server):
    def set_up(self, dbapi_connection: Any, record: Any) -> None:
        # The server looks for a deadlock after a second.
        cursor = dbapi_connection.cursor()
        cursor.execute("SET SESSION deadlock_timeout = '20ms'")
        cursor.close()
        dbapi_connection.commit()

    def session(self, dbapi_connection: Any) -> int:
        return int(dbapi_connection.info.backend_pid)

    def waits_for_lock(self, session: int) -> bool:
        query = 'SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s'
        return bool(self._conn.exec_driver_sql(query, (session,)).scalar())


_SERVERS: dict[str, type[Server]] = {
    'mariadb': MariaDB,
    'mysql': MySQL,
    'postgresql': PostgreSQL,
}


def of(engine: sa.Engine) -> Server:
    """Return the database server of an engine."""
    return _SERVERS[servers.engine()](engine)
