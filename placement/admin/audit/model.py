"""What the modules with checks use: the decorator of a check, its reads, and its correction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import Any, NamedTuple

from oslo_config import cfg
import sqlalchemy as sa

from placement import exception
from placement.admin.audit import trees
from placement.admin.progress import Progress
from placement.db import engine, expressions
from placement.db.sqlalchemy import models

ERROR, NOTICE = 'error', 'notice'
FIX, PURGE = '--fix', '--purge'
# The findings that one transaction corrects. It writes at most twice as many rows, because a
# correction can also touch the parent of a provider.
BATCH = 500

# The codes that other commands name.
ORPHAN_ALLOCATION = 'orphan-allocation'
ORPHAN_PROVIDER = 'orphan-provider'
UNKNOWN_CLASS = 'unknown-class'
OWNER_MISSING = 'owner-missing'
ROOT_MISSING = 'root-missing'
PARENT_MISSING = 'parent-missing'
PARENT_CYCLE = 'parent-cycle'

_PROVIDERS = models.resource_providers

# The keys of a row are readable names. The values are texts, numbers, lists or None.
Row = Mapping[str, Any]

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
# In a change, the number of findings that it corrects; without this key, it is 1.
ALLOCATIONS = 'allocations'
# The prefix of all columns of a table that are read in addition to columns with names.
_STORED = 'stored_'
# The rows that a driver receives together.
_FETCHED = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a check.

    :ivar count: the number of findings
    :ivar rows: the first of them
    """

    count: int = 0
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Audited:
    """The database that the checks read.

    :ivar conn: a connection from `engine.snapshot()`, so that all findings are about one state
    :ivar row_limit: the maximum number of rows of each finding
    :ivar incomplete_project: the option `[placement] incomplete_consumer_project_id`
    :ivar servers: the servers of Nova, keyed by the digits of the UUID (see `names.digits_of`)
    """

    conn: sa.Connection
    row_limit: int
    incomplete_project: str
    servers: Mapping[str, Row] = field(default_factory=dict)

    def rows(self, *selects: sa.Select[Any]) -> Found:
        """Count the rows of all selects, and read the first of them.

        The function executes one statement for each select, and one more if it has rows.
        """
        count, rows = 0, list[Row]()
        for select in selects:
            counted = sa.select(sa.func.count()).select_from(select.order_by(None).subquery())
            found = self.conn.execute(counted).scalar_one()
            count += found
            limit = min(found, self.row_limit - len(rows))
            if limit > 0:
                rows.extend(map(readable, mappings(self.conn, select.limit(limit))))
        return Found(count, tuple(rows))

    def scalars(self, select: sa.Select[Any]) -> Iterator[Any]:
        """Yield the values of a column that can have a million rows."""
        return iter(self.conn.scalars(select, execution_options={'yield_per': _FETCHED}))


def mappings(conn: sa.Connection, select: sa.Select[Any]) -> list[dict[str, Any]]:
    """Execute a select and return its rows as dictionaries."""
    return [dict(row) for row in conn.execute(select).mappings()]


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


def provider_columns(id_: sa.ColumnElement[Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of a provider for a select with an outer join to the providers."""
    return (
        _PROVIDERS.c.name.label('provider'),
        _PROVIDERS.c.uuid.label('provider_uuid'),
        id_.label('provider_id'),
    )


# Corrections ----------------------------------------------------------------------


class Batch(NamedTuple):
    """The findings that one transaction corrects.

    :ivar keys: identify the findings, as an earlier transaction read them
    :ivar conf: the configuration, with the project and the user of incomplete consumers
    """

    keys: Sequence[Any]
    conf: cfg.ConfigOpts


# How the findings in a table are corrected: a select of the keys of the findings, which are the
# values of the only column or rows, and a function that repeats the check of a batch, corrects the
# findings, and returns the changes.
Fix = tuple[sa.Select[Any], Callable[[Batch, sa.Connection], list[Row]]]


@dataclass(frozen=True, slots=True)
class Correction:
    """How the findings of a code are corrected.

    :ivar order: smaller numbers are corrected first, because they can make larger ones necessary
    :ivar text: what the option does with each finding, for the guide
    :ivar fixes: one for each table with findings
    :ivar option: the option of the command that requests the correction
    """

    order: int
    text: str
    fixes: Sequence[Fix]
    option: str = FIX

    def make(self, code: str, conf: cfg.ConfigOpts, report: Progress) -> list[Row]:
        """Correct the findings, `BATCH` of them in a transaction, and return the changes.

        If a concurrent request makes a correction impossible, for example because it moves a
        provider, the next round corrects the finding. The rounds end when nothing is found, or the
        same as before.
        """
        changes: list[Row] = []
        for select, work in self.fixes:
            before: Sequence[Any] = ()
            while (keys := _keys(select)) and keys != before:
                before = keys
                with report(f'Correcting {code}', len(keys)) as advance:
                    for start in range(0, len(keys), BATCH):
                        batch = Batch(keys[start : start + BATCH], conf)
                        changes += engine.write(functools.partial(work, batch))
                        advance(len(batch.keys))
        return changes


def _keys(select: sa.Select[Any]) -> Sequence[Any]:
    with engine.snapshot() as conn:
        trees.permit_any_depth(conn)
        rows = conn.execute(select).all()
    return rows if len(select.selected_columns) > 1 else [row[0] for row in rows]


def change(identity: Row, before: Row | None, after: Row | None) -> Row:
    """Return the row of a finding about a changed row of the database.

    :param identity: names that identify the row
    :param before: the changed columns, or all columns of a deleted row; None if the row is new
    :param after: the same columns after the change; None if the row was deleted
    """
    return {**identity, 'before': before, 'after': after}


def is_change(row: Row) -> bool:
    """Return whether a row of a finding is about a changed row of the database."""
    return 'before' in row


def as_stored(row: Mapping[Any, Any]) -> Row:
    """Return a row with times as texts, so that JSON can represent it."""
    return {
        name: value.isoformat(' ') if isinstance(value, datetime.datetime) else value
        for name, value in row.items()
    }


def require(conn: sa.Connection, write: sa.Update | sa.Delete, count: int) -> None:
    """Execute a statement that writes `count` rows.

    :raises exception.ConcurrentChange: a concurrent transaction changed or deleted one of the rows
    """
    if conn.execute(write).rowcount != count:
        raise exception.ConcurrentChange('A row of the database')


def delete(
    conn: sa.Connection, table: sa.Table, names: sa.Select[Any], *which: sa.ColumnElement[bool]
) -> list[Row]:
    """Delete rows of a table, and return the changes.

    :param names: selects the names that identify each row of the table
    :param which: the conditions of the rows
    :raises exception.ConcurrentChange: a concurrent transaction changed or deleted one of the rows
    """
    stored = [column.label(f'{_STORED}{column.name}') for column in table.columns]
    changes = []
    for row in mappings(conn, names.add_columns(*stored).where(*which)):
        before = {column.name: row.pop(f'{_STORED}{column.name}') for column in table.columns}
        changes.append(change(readable(row), as_stored(before), None))
    require(conn, sa.delete(table).where(*which), len(changes))
    return changes


def have_keys(table: sa.Table, keys: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Return whether a row of a table has one of these ids, or of these primary keys."""
    columns: list[sa.Column[Any]] = [*table.primary_key.columns]
    if len(columns) == 1:
        return columns[0].in_(expressions.id_list(keys))
    # The database finds the rows by the first column.
    first = columns[0].in_(expressions.id_list({key[0] for key in keys}))
    return sa.and_(first, sa.tuple_(*columns).in_([tuple(key) for key in keys]))


# Kinds of findings ----------------------------------------------------------------

Check = Callable[[Audited], Found]


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding; `finding` has the parameters."""

    name: str
    meaning: str
    severity: str
    read: Check
    correction: Correction | None
    command: str
    needs_servers: bool


# All kinds of findings, in the order of the report.
CODES: list[Code] = []


def finding(
    code: str,
    text: str,
    severity: str = ERROR,
    *,
    correction: Correction | None = None,
    command: str = '',
    needs_servers: bool = False,
) -> Callable[[Check], Check]:
    """Return a decorator that adds a check to the audit.

    :param text: what the check finds
    :param severity: `ERROR`, or `NOTICE` if the data is legal
    :param correction: what `--fix` does; None if only the operator can correct the data
    :param command: what the operator can execute next; `{key}` is a value of the first row
    :param needs_servers: whether the check needs the list of the servers of Nova
    """

    def add(read: Check) -> Check:
        CODES.append(Code(code, text, severity, read, correction, command, needs_servers))
        return read

    return add


@dataclass(frozen=True, slots=True)
class Finding:
    """All findings of one code.

    :ivar count: the number of findings, including those that were corrected
    :ivar fixed: the number of findings that were corrected
    :ivar rows: every changed row, and the first rows that were not changed
    """

    code: str
    severity: str
    count: int
    fixed: int = 0
    rows: tuple[Row, ...] = ()

    @property
    def left(self) -> int:
        """The number of findings that were not corrected."""
        return self.count - self.fixed
