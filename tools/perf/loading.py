"""Load worlds into a database.

The rows are inserted directly into the tables, because creating them through the API would take
hours. They are generated and inserted in batches, so the memory does not grow with the world: the
process that loads a million hosts needs about 120 MiB.
"""

from collections.abc import Sequence
import contextlib
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from tools.perf import worlds


class NotEmptyError(Exception):
    """The database already has resource providers, and the caller does not allow their deletion."""


def build(engine: sa.Engine, world: worlds.World, erase: bool = False) -> None:
    """Insert a world into a database that has the standard traits and resource classes.

    :param erase: whether to delete the existing providers, consumers and allocations
    :raises NotEmptyError: the database has providers, and `erase` is false
    """
    with engine.begin() as conn:
        if erase:
            _erase(conn)
        elif conn.execute(sa.select(models.resource_providers.c.id).limit(1)).first():
            raise NotEmptyError('The database already has resource providers')
        ids = ids_of_names(conn)
    with engine.connect() as conn:
        _without_key_checks(conn)
        for rows in worlds.rows_of(world, ids):
            with conn.begin():
                for table in worlds.TABLES:
                    if rows[table.name]:
                        conn.execute(sa.insert(table), rows[table.name])
    _update_statistics(engine)


def _without_key_checks(conn: sa.Connection) -> None:
    """Disable the checks of keys on MySQL, and keep the connection out of the pool afterwards."""
    if conn.dialect.name == 'mysql':
        conn.detach()
        with conn.begin():
            conn.exec_driver_sql('SET foreign_key_checks = 0, unique_checks = 0')


def ids_of_names(conn: sa.Connection) -> worlds.Ids:
    """Return the ids of resource classes and traits; create the custom ones of the worlds."""
    return worlds.Ids(
        classes=_ids_of(conn, models.resource_classes, [worlds.DEVICE], first=10_000),
        traits=_ids_of(conn, models.traits, worlds.CUSTOM_TRAITS),
    )


def _ids_of(
    conn: sa.Connection, table: sa.Table, custom: Sequence[str], first: int | None = None
) -> dict[str, int]:
    query = sa.select(table.c.name, table.c.id)
    existing = {row[0] for row in conn.execute(query)}
    missing: list[dict[str, Any]] = [{'name': name} for name in custom if name not in existing]
    if first is not None:
        missing = [{**row, 'id': first + number} for number, row in enumerate(missing)]
    if missing:
        conn.execute(sa.insert(table), missing)
    return {row[0]: row[1] for row in conn.execute(query)}


def _erase(conn: sa.Connection) -> None:
    providers = models.resource_providers
    conn.execute(sa.update(providers).values(parent_provider_id=None, root_provider_id=None))
    for table in reversed(worlds.TABLES):
        conn.execute(sa.delete(table))


def _update_statistics(engine: sa.Engine) -> None:
    """Update statistics, sequences and data files to the state that they have in production."""
    if engine.dialect.name == 'sqlite':
        return
    # VACUUM cannot run in a transaction, and the engine of the service begins transactions.
    outside = sa.create_engine(engine.url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
    with outside.connect() as conn:
        if engine.dialect.name == 'mysql':
            names = ', '.join(table.name for table in worlds.TABLES)
            conn.exec_driver_sql(f'ANALYZE TABLE {names}').all()
            # Write all changed pages to the data files. Otherwise, the server does so during the
            # measurement, and claims take several times longer.
            with contextlib.suppress(sa.exc.OperationalError):  # the account may not do this
                conn.exec_driver_sql(f'FLUSH TABLES {names} FOR EXPORT')
                conn.exec_driver_sql('UNLOCK TABLES')
        else:
            for table in worlds.WITH_GIVEN_IDS:
                sequence = sa.func.pg_get_serial_sequence(table.name, 'id')
                last = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 1)).scalar_subquery()
                conn.execute(sa.select(sa.func.setval(sequence, last)))
            conn.exec_driver_sql('VACUUM ANALYZE')


def size_mib(engine: sa.Engine) -> float | None:
    """Return the size of the tables and indexes of the database; None on SQLite."""
    queries = {
        'mysql': 'SELECT SUM(data_length + index_length) FROM information_schema.tables '
        'WHERE table_schema = DATABASE()',
        'postgresql': 'SELECT pg_database_size(current_database())',
    }
    if engine.dialect.name not in queries:
        return None
    with engine.connect() as conn:
        return int(conn.exec_driver_sql(queries[engine.dialect.name]).scalar_one()) / 2**20
