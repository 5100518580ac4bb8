"""Databases on a server that the test run has started (see tools/with_database.py).

A process that runs tests makes databases of its own there and uses each for many tests, one
after the other. They go when the server goes.
"""

from dataclasses import dataclass
import itertools
import os

import sqlalchemy as sa

from placement.db.sqlalchemy import models

# Names the URL of a database on the server from which others can be created.
ADMIN_URL = 'PLACEMENT_TEST_DATABASE_URL'

_numbers = itertools.count(1)
_free: dict[int, list[str]] = {}


@dataclass(frozen=True, slots=True)
class Lease:
    """A database that belongs to one test for the moment; it may be empty or have tables."""

    url: str

    def give_back(self) -> None:
        """Let another test of this process use the database."""
        _free.setdefault(os.getpid(), []).append(self.url)


def admin_url() -> sa.URL:
    """The URL of the server of this run; a KeyError when there is none."""
    return sa.make_url(os.environ[ADMIN_URL])


def lease() -> Lease:
    """Give a database that no other test uses, making one when there is none to spare."""
    spare = _free.setdefault(os.getpid(), [])
    return Lease(spare.pop() if spare else create())


def create() -> str:
    """Make an empty database on the server of this run and give its URL."""
    name = f'placement_{os.getpid()}_{next(_numbers)}'
    admin = admin_url()
    engine = sa.create_engine(admin, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
    with engine.connect() as conn:
        conn.exec_driver_sql(f'CREATE DATABASE {name}')
    return admin.set(database=name).render_as_string(hide_password=False)


def delete_all_rows(engine: sa.Engine) -> None:
    """Delete every row of every table of the service."""
    with engine.begin() as conn:
        # Providers refer to each other, and MySQL checks that row by row.
        conn.execute(
            sa.update(models.resource_providers).values(
                root_provider_id=None, parent_provider_id=None
            )
        )
        for table in reversed(models.metadata.sorted_tables):
            conn.execute(sa.delete(table))
