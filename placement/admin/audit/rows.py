"""Count the findings of a check, and read the first of them with readable names."""

from collections.abc import Iterator, Mapping, Sequence
import datetime
from typing import Any

import sqlalchemy as sa

from placement.admin.audit.model import Found, Row
from placement.db.sqlalchemy import models

PROVIDERS = models.resource_providers
CLASSES = models.resource_classes

# A row contains the id of another row only if that row does not exist: the keys of the names, and
# the key of the id. The first name is never NULL in a row that exists.
_NAMES_AND_IDS = (
    (('provider_uuid', 'provider'), 'provider_id'),
    (('root_provider_uuid',), 'root_provider_id'),
    (('resource_class',), 'resource_class_id'),
    (('project',), 'project_id'),
    (('user',), 'user_id'),
    (('consumer_type',), 'consumer_type_id'),
)
# The database returns sums as decimal numbers, and the capacity with decimal places.
_NUMBERS = frozenset({'used', 'capacity'})
# The prefix of the columns in `stored_columns`.
_STORED = 'stored_'


def provider_columns(id_: sa.ColumnElement[Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of a provider for a select with an outer join to the providers."""
    return (
        PROVIDERS.c.name.label('provider'),
        PROVIDERS.c.uuid.label('provider_uuid'),
        id_.label('provider_id'),
    )


def class_columns(id_: sa.ColumnElement[Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of a class for a select with an outer join to the resource classes."""
    return CLASSES.c.name.label('resource_class'), id_.label('resource_class_id')


def read(conn: sa.Connection, selects: Sequence[sa.Select[Any]], row_limit: int) -> Found:
    """Count the rows of all selects, and read the first rows.

    The function executes one statement for each select, and one more for each select with rows.

    :param row_limit: the maximum number of rows to read
    """
    count, rows = 0, list[Row]()
    for select in selects:
        found = conn.execute(
            sa.select(sa.func.count()).select_from(select.order_by(None).subquery())
        ).scalar_one()
        count += found
        limit = min(found, row_limit - len(rows))
        if limit > 0:
            rows.extend(readable(row) for row in mappings(conn, select.limit(limit)))
    return Found(count, tuple(rows))


def mappings(conn: sa.Connection, select: sa.Select[Any]) -> Iterator[dict[str, Any]]:
    """Execute a select and yield its rows as dictionaries."""
    return (dict(row) for row in conn.execute(select).mappings().all())


def readable(row: dict[str, Any]) -> Row:
    """Return a row with either the names or the id of each row that it refers to."""
    for number in _NUMBERS & row.keys():
        row[number] = int(row[number])
    for names, id_ in _NAMES_AND_IDS:
        if id_ not in row:
            continue
        if row.get(names[0]) is None and row[id_] is not None:
            for name in names:
                row.pop(name, None)
        else:
            del row[id_]
    return row


def stored_columns(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """Return all columns of a table, to read them in addition to columns with names."""
    return [column.label(f'{_STORED}{column.name}') for column in table.columns]


def split(row: Mapping[str, Any]) -> tuple[Row, Row]:
    """Return the readable names in a row, and the columns in `stored_columns`."""
    stored = {
        name.removeprefix(_STORED): value for name, value in row.items() if name.startswith(_STORED)
    }
    names = {name: value for name, value in row.items() if not name.startswith(_STORED)}
    return readable(names), as_stored(stored)


def as_stored(row: Mapping[Any, Any]) -> Row:
    """Return a row with times as texts, so that JSON can represent it."""
    return {
        name: value.isoformat(' ') if isinstance(value, datetime.datetime) else value
        for name, value in row.items()
    }
