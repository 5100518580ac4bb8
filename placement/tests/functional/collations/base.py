"""A service on a database whose name columns have a chosen collation."""

import contextlib
import functools
from typing import Any, ClassVar
from unittest import mock

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import servers
from placement.tests.functional.races import arena

# Every column with texts that clients write.
COLUMNS = (
    models.projects.c.external_id,
    models.users.c.external_id,
    models.consumer_types.c.name,
    models.consumers.c.uuid,
    models.allocations.c.consumer_id,
    models.resource_providers.c.uuid,
    models.resource_providers.c.name,
    models.resource_classes.c.name,
    models.traits.c.name,
    models.placement_aggregates.c.uuid,
)

# PostgreSQL has no such collations by itself: what each is made with.
ICU = {
    # Ignores case and accents.
    'loose': "locale = 'und-u-ks-level1'",
    # Ignores punctuation too: the class CUSTOM_A_B equals CUSTOM_AB.
    'unpunctuated': "locale = 'und-u-ka-shifted-ks-level1'",
}


@functools.cache
def database(collation: str | None, *others: tuple[str, str]) -> str:
    """The URL of a database on the server of this run, one for each setting of collations."""
    url = servers.create()
    if collation in ICU:
        engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        options = f'provider = icu, {ICU[collation]}, deterministic = false'
        with engine.connect() as conn:
            conn.exec_driver_sql(f'CREATE COLLATION {collation} ({options})')
    return url


class CollationTest(arena.Arena):
    """Gives each test an empty service; `equal` returns what the database compares as equal."""

    # The only engine that has the collation.
    engine: ClassVar[str | None] = None
    collation: ClassVar[str | None] = None
    # Tables whose columns have another collation, as in a database with tables of several ages.
    others: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        server = servers.admin_url().get_backend_name() if arena.on_server() else 'sqlite'
        if self.engine not in (None, server):
            self.skipTest(f'this run is on {server}')
        if server != 'sqlite':
            # The fixture leases the database that was given back last.
            servers.Lease(database(self.collation, *self.others.items())).give_back()
            self.addCleanup(servers.lease)
        with contextlib.ExitStack() as stack:
            for column in COLUMNS:
                collation = self.others.get(column.table.name, self.collation)
                type_ = sa.String(column.type.length, collation=collation)
                stack.enter_context(mock.patch.object(column, 'type', type_))
            super().setUp()

    def equal(self, one: str, other: str) -> bool:
        """Whether the database compares two texts as equal, in a column with the collation."""
        column = sa.Column('name', sa.String(255, collation=self.collation))
        table = sa.Table('compared', sa.MetaData(), column, prefixes=['TEMPORARY'])
        with db_api.get_placement_engine().connect() as conn:
            table.create(conn, checkfirst=False)
            conn.execute(sa.insert(table), {'name': one})
            same = bool(conn.scalar(sa.select(sa.func.count()).where(column == other)))
            table.drop(conn, checkfirst=False)
            return same

    def rows(self, statement: sa.Select[Any]) -> list[Any]:
        with db_api.reader() as conn:
            return list(conn.execute(statement))

    @contextlib.contextmanager
    def attempts(self):
        """Count the transactions of writing requests, those that are retried included."""
        with mock.patch.object(db_api, '_attempt', wraps=db_api._attempt) as attempt:
            yield attempt
