"""Find consumers that are no server of Nova."""

from collections.abc import Iterator
import json
import pathlib
from typing import Any
import uuid

import sqlalchemy as sa

from placement.admin.audit import consumers, rows
from placement.admin.audit.model import Found
from placement.admin.failure import CannotProceedError
from placement.db.sqlalchemy import models

# The names that the commands of `openstack` give to the column with the UUID.
_COLUMNS = ('UUID', 'uuid', 'ID', 'Id', 'id')
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


def read_file(path: str) -> frozenset[uuid.UUID]:
    """Return the UUIDs of the servers in a file.

    :param path: a JSON list, as `openstack server list -f json` prints it
    :raises OSError: the file cannot be read
    :raises CannotProceedError: the file contains something else
    """
    try:
        listed = json.loads(pathlib.Path(path).read_text('utf-8'))
    except ValueError as error:
        raise CannotProceedError(
            f'The file {path} contains no JSON. Write it with {_COMMAND}.'
        ) from error
    if not isinstance(listed, list):
        raise CannotProceedError(f'The file {path} contains no list. Write it with {_COMMAND}.')
    return frozenset(_uuid_of(row, number, path) for number, row in enumerate(listed, 1))


def _uuid_of(row: Any, number: int, path: str) -> uuid.UUID:
    values = map(row.get, _COLUMNS) if isinstance(row, dict) else ()
    for value in values:
        if (found := _parsed(value)) is not None:
            return found
    raise CannotProceedError(
        f'Row {number} in the file {path} has no UUID. Write the file with {_COMMAND}.'
    )


def _parsed(value: Any) -> uuid.UUID | None:
    try:
        return uuid.UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def read_missing(conn: sa.Connection, servers: frozenset[uuid.UUID], row_limit: int) -> Found:
    """Count the consumers that are neither a server nor a migration, and read the first."""
    missing = list(_missing(conn, servers))
    first = consumers.WITH_OWNERS.where(_CONSUMERS.c.uuid.in_(missing[:row_limit]))
    return Found(len(missing), tuple(map(rows.readable, rows.mappings(conn, first))))


def _missing(conn: sa.Connection, servers: frozenset[uuid.UUID]) -> Iterator[str]:
    # PERF: a million consumers are compared here, because no statement can have a million servers
    # as its parameters.
    for text in conn.execution_options(yield_per=_FETCHED).scalars(_UUIDS):
        if _parsed(text) not in servers:
            yield text
