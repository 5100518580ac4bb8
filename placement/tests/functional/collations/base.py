"""A service whose database has a given collation for all columns of names."""

import contextlib
import functools
from typing import Any, ClassVar
from unittest import mock

import sqlalchemy as sa

from placement import db_api
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
def database(
    collation: str | None,
    *others: tuple[str, str],
    character_set: str | None = None,
    charset: str | None = None,
) -> str:
    """The URL of a database on the server of this run, one for each combination of parameters."""
    url = servers.create()
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
    if collation in ICU:
        options = f'provider = icu, {ICU[collation]}, deterministic = false'
        with engine.connect() as conn:
            conn.exec_driver_sql(f'CREATE COLLATION {collation} ({options})')
    if character_set is not None:
        with engine.connect() as conn:
            conn.exec_driver_sql(
                f'ALTER DATABASE {engine.url.database} CHARACTER SET {character_set}'
            )
    return url if charset is None else with_charset(url, charset)


def with_charset(url: str, charset: str) -> str:
    """Return a URL with a character set of the connection."""
    changed = sa.make_url(url).update_query_dict({'charset': charset})
    return changed.render_as_string(hide_password=False)


class CollationTest(testcase.RaceTestCase):
    """Provides an empty service whose columns have a collation."""

    collation: ClassVar[str | None] = None
    # Other collations by table, as in a database whose tables were created at different times.
    others: ClassVar[dict[str, str]] = {}
    # The character set of the database, and `charset` in its URL; None for those of the run.
    character_set: ClassVar[str | None] = None
    charset: ClassVar[str | None] = None

    def setUp(self) -> None:
        if testcase.uses_server():
            # The fixture leases the database that was returned last.
            servers.Lease(
                database(
                    self.collation,
                    *self.others.items(),
                    character_set=self.character_set,
                    charset=self.charset,
                )
            ).release()
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
        with db_api.get_placement_engine().connect() as conn:
            table.create(conn, checkfirst=False)
            conn.execute(sa.insert(table), {'name': one})
            same = bool(conn.scalar(sa.select(sa.func.count()).where(column == other)))
            table.drop(conn, checkfirst=False)
            return same

    def rows(self, statement: sa.Select[Any]) -> list[Any]:
        with db_api.snapshot() as conn:
            return list(conn.execute(statement))
