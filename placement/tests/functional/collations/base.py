"""A service whose database has a given collation for all columns of names."""

import contextlib
import functools
from typing import Any, ClassVar
from unittest import mock

import sqlalchemy as sa

from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.tests import servers
from placement.tests.functional.races import testcase

# The columns of texts that clients write.
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

# Collations that PostgreSQL does not provide, and the options that create them.
ICU = {
    # Ignores case and accents.
    'loose': "locale = 'und-u-ks-level1'",
    # Ignores punctuation too: the class CUSTOM_A_B equals CUSTOM_AB.
    'unpunctuated': "locale = 'und-u-ka-shifted-ks-level1'",
}


@functools.cache
def database(collation: str | None, *others: tuple[str, str]) -> str:
    """The URL of a database on the server of this run, one for each combination of collations."""
    url = servers.create()
    if collation in ICU:
        engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        options = f'provider = icu, {ICU[collation]}, deterministic = false'
        with engine.connect() as conn:
            conn.exec_driver_sql(f'CREATE COLLATION {collation} ({options})')
    return url


class CollationTest(testcase.RaceTestCase):
    """Provides an empty service whose columns have a collation."""

    # The engine that has the collation; None for all engines.
    engine: ClassVar[str | None] = None
    collation: ClassVar[str | None] = None
    # Other collations by table, as in a database whose tables were created at different times.
    others: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        server = servers.admin_url().get_backend_name() if testcase.uses_server() else 'sqlite'
        if self.engine not in (None, server):
            self.skipTest(f'this run is on {server}')
        if server != 'sqlite':
            # The fixture leases the database that was returned last.
            servers.Lease(database(self.collation, *self.others.items())).release()
            self.addCleanup(servers.lease)
        with contextlib.ExitStack() as stack:
            for column in COLUMNS:
                collation = self.others.get(column.table.name, self.collation)
                type_ = sa.String(column.type.length, collation=collation)
                stack.enter_context(mock.patch.object(column, 'type', type_))
            super().setUp()

    def equal(self, one: str, other: str) -> bool:
        """Whether two texts are equal in a column with the collation."""
        column = sa.Column('name', sa.String(255, collation=self.collation))
        table = sa.Table('compared', sa.MetaData(), column, prefixes=['TEMPORARY'])
        with db_engine.get_placement_engine().connect() as conn:
            table.create(conn, checkfirst=False)
            conn.execute(sa.insert(table), {'name': one})
            same = bool(conn.scalar(sa.select(sa.func.count()).where(column == other)))
            table.drop(conn, checkfirst=False)
            return same

    def rows(self, statement: sa.Select[Any]) -> list[Any]:
        with db_engine.reader() as conn:
            return list(conn.execute(statement))

    @contextlib.contextmanager
    def attempts(self):
        """Count the attempts of writing transactions."""
        with mock.patch.object(db_engine, '_attempt', wraps=db_engine._attempt) as attempt:
            yield attempt
