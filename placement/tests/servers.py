"""Databases on the server of the test run, which tools/with_database.py starts.

Each test process creates its own databases there and uses each of them for many tests, one after
the other. tools/with_database.py deletes them together with the server.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import functools
import itertools
import os
import secrets

import sqlalchemy as sa

from placement.db.sqlalchemy import models

# The variable with the URL of a database from which other databases can be created.
ADMIN_URL = 'PLACEMENT_TEST_DATABASE_URL'

_numbers = itertools.count(1)
_free: dict[int, list[str]] = {}


@dataclass(frozen=True, slots=True)
class Lease:
    """A database that one test uses at a time; it is empty or has all tables."""

    url: str

    def release(self) -> None:
        """Make the database available to other tests of this process."""
        _free.setdefault(os.getpid(), []).append(self.url)


def admin_url() -> sa.URL:
    """Return the administrative URL of the server of this run.

    :raises KeyError: the run has no server
    """
    return sa.make_url(os.environ[ADMIN_URL])


@functools.cache
def engine() -> str:
    """Return the engine of this run: `mariadb`, `mysql`, `postgresql`, or `sqlite`."""
    if ADMIN_URL not in os.environ:
        return 'sqlite'
    url = admin_url()
    if url.get_backend_name() == 'postgresql':
        return 'postgresql'
    # MariaDB and MySQL have the same URLs.
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as conn:
        return 'mariadb' if getattr(conn.dialect, 'is_mariadb', False) else 'mysql'


def lease() -> Lease:
    """Return a database that no other test uses; create one if none is free."""
    free = _free.setdefault(os.getpid(), [])
    return Lease(free.pop() if free else create())


def create() -> str:
    """Create an empty database on the server of this run and return its URL."""
    return create_database(admin_url(), f'placement_{os.getpid()}_{next(_numbers)}')


def create_database(admin: sa.URL, name: str) -> str:
    """Create an empty database with a name and return its URL.

    :param admin: the URL of an administrative database on the same server
    """
    execute(admin, f'CREATE DATABASE {name}')
    return admin.set(database=name).render_as_string(hide_password=False)


def create_account(url: sa.URL, privileges: Sequence[str]) -> sa.URL:
    """Create an account with privileges on the existing tables of a database; return its URL.

    :param url: the URL of the database, with the administrative account
    """
    name, password = f'u{secrets.token_hex(6)}', secrets.token_hex(8)
    granted = ', '.join(privileges)
    if url.get_backend_name() == 'mysql':
        account = f"'{name}'@'127.0.0.1'"
        statements = [
            f"CREATE USER {account} IDENTIFIED BY '{password}'",
            f'GRANT {granted or "USAGE"} ON {url.database}.* TO {account}',
        ]
    else:
        statements = [f"CREATE ROLE {name} LOGIN PASSWORD '{password}'"]
        if granted:
            statements.append(f'GRANT {granted} ON ALL TABLES IN SCHEMA public TO {name}')
    execute(url, *statements)
    return url.set(username=name, password=password)


def change_password(admin: sa.URL, account: sa.URL) -> None:
    """Replace the password of an account by one that nobody knows.

    :param admin: the URL of the database, with the administrative account
    """
    password = secrets.token_hex(8)
    statement = f"ALTER ROLE {account.username} PASSWORD '{password}'"
    if admin.get_backend_name() == 'mysql':
        statement = f"ALTER USER '{account.username}'@'127.0.0.1' IDENTIFIED BY '{password}'"
    execute(admin, statement)


def execute(url: sa.URL, *statements: str) -> None:
    """Execute statements, each in a transaction of its own."""
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
    with engine.connect() as conn:
        for statement in statements:
            conn.exec_driver_sql(statement)


def drop_database(admin: sa.URL, name: str) -> None:
    """Delete a database with all data; it may be missing."""
    execute(admin, f'DROP DATABASE IF EXISTS {name}')


def delete_all_rows(engine: sa.Engine) -> None:
    """Delete every row of every table of the service."""
    with engine.begin() as conn:
        # Providers refer to each other, and MySQL checks foreign keys row by row.
        conn.execute(
            sa.update(models.resource_providers).values(
                root_provider_id=None, parent_provider_id=None
            )
        )
        for table in reversed(models.metadata.sorted_tables):
            conn.execute(sa.delete(table))
