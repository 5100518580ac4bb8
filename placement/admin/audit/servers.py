"""Compare the consumers with the servers of Nova."""

from collections.abc import Iterator, Mapping
import uuid

import sqlalchemy as sa

from placement.admin import names
from placement.admin.audit import consumers, rows
from placement.admin.audit.model import NO_ALLOCATIONS, NO_SERVER, Found, Row
from placement.db.sqlalchemy import models

# The codes of the findings.
CODES = (NO_SERVER, NO_ALLOCATIONS)

_COMMAND = '`openstack server list --all-projects --limit -1 -f json`'
# The type of the consumers of migrations.
_MIGRATION = 'MIGRATION'
# Servers with these states use no host.
_WITHOUT_HOST = frozenset({'BUILD', 'DELETED', 'SHELVED_OFFLOADED'})
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
_WITH_ALLOCATIONS = sa.select(models.allocations.c.consumer_id).distinct()


def read_file(path: str) -> dict[str, Row]:
    """Return the servers in a file, keyed by the digits of the UUID (see `names.digits_of`).

    :raises CannotProceedError: the file cannot be read, or is not a list of servers
    """
    return {
        digits: {
            'server': row.get('Name'),
            'server_uuid': str(uuid.UUID(digits)),
            'status': row.get('Status'),
        }
        for digits, row in names.rows(path, f'Write it with {_COMMAND}.')
    }


def read_findings(
    conn: sa.Connection, servers: Mapping[str, Row], row_limit: int
) -> dict[str, Found]:
    """Return the consumers without a server, and the servers without allocations.

    PERF: a million consumers are compared here, because no statement can have a million servers as
    its parameters.

    :param servers: the result of `read_file`
    """
    unknown = [text for text in _texts(conn, _UUIDS) if names.digits_of(text) not in servers]
    first = consumers.WITH_OWNERS.where(_CONSUMERS.c.uuid.in_(unknown[:row_limit]))
    without = dict(servers)
    for text in _texts(conn, _WITH_ALLOCATIONS):
        without.pop(names.digits_of(text), None)
    using = [row for row in without.values() if row['status'] not in _WITHOUT_HOST]
    return {
        NO_SERVER: Found(len(unknown), tuple(map(rows.readable, rows.mappings(conn, first)))),
        NO_ALLOCATIONS: Found(len(using), tuple(using[:row_limit])),
    }


def _texts(conn: sa.Connection, select: sa.Select[tuple[str]]) -> Iterator[str]:
    return iter(conn.scalars(select, execution_options={'yield_per': _FETCHED}))
