"""Find consumers that are no server of Nova."""

from collections.abc import Iterator

import sqlalchemy as sa

from placement.admin import names
from placement.admin.audit import consumers, rows
from placement.admin.audit.model import Found
from placement.db.sqlalchemy import models

_COMMAND = '`openstack server list --all-projects --limit -1 -f json`'
# The type of the consumers of migrations.
_MIGRATION = 'MIGRATION'
# The rows that a driver receives together.
_FETCHED = 10_000

_CONSUMERS = models.consumers
_TYPES = models.consumer_types
_UUIDS = (
    sa.select(_CONSUMERS.c.uuid)
    .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
    .where(sa.func.coalesce(_TYPES.c.name, '') != _MIGRATION)
    .order_by(_CONSUMERS.c.id)
)


def read_file(path: str) -> frozenset[str]:
    """Return the digits of the UUIDs of the servers in a file (see `names.digits_of`).

    :raises CannotProceedError: the file cannot be read, or is not a list of servers
    """
    return frozenset(digits for digits, _ in names.rows(path, f'Write it with {_COMMAND}.'))


def read_missing(conn: sa.Connection, servers: frozenset[str], row_limit: int) -> Found:
    """Count the consumers that are neither a server nor a migration, and read the first."""
    missing = list(_missing(conn, servers))
    first = consumers.WITH_OWNERS.where(_CONSUMERS.c.uuid.in_(missing[:row_limit]))
    return Found(len(missing), tuple(map(rows.readable, rows.mappings(conn, first))))


def _missing(conn: sa.Connection, servers: frozenset[str]) -> Iterator[str]:
    # PERF: a million consumers are compared here, because no statement can have a million servers
    # as its parameters.
    for text in conn.scalars(_UUIDS, execution_options={'yield_per': _FETCHED}):
        if names.digits_of(text) not in servers:
            yield text
