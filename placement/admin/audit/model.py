"""What the modules with checks use: the decorator of a check, its reads, and its correction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import datetime
import functools
from typing import Any, TypeVar

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.progress import Progress
from placement.db import engine
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
_CLASSES = models.resource_classes

# The keys of a row are readable names. The values are texts, numbers, lists or None.
Row = Mapping[str, Any]
T = TypeVar('T')
Key = TypeVar('Key')

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
    _shared: dict[Callable[[sa.Connection], Any], Any] = field(default_factory=dict)

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

    def once(self, read: Callable[[sa.Connection], T]) -> T:
        """Return the result of a function that several checks use, and call it only once."""
        if read not in self._shared:
            self._shared[read] = read(self.conn)
        result: T = self._shared[read]
        return result


def scalars(conn: sa.Connection, select: sa.Select[Any]) -> Iterator[Any]:
    """Yield the values of a column that can have a million rows."""
    return iter(conn.scalars(select, execution_options={'yield_per': _FETCHED}))


def keys(select: sa.Select[Any]) -> Sequence[Any]:
    """Return the values of a column, as one snapshot has them."""
    with engine.snapshot() as conn:
        return conn.scalars(select).all()


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


def provider_columns(id_: sa.ColumnElement[Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of a provider for a select with an outer join to the providers."""
    return (
        _PROVIDERS.c.name.label('provider'),
        _PROVIDERS.c.uuid.label('provider_uuid'),
        id_.label('provider_id'),
    )


def class_columns(id_: sa.ColumnElement[Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of a class for a select with an outer join to the resource classes."""
    return _CLASSES.c.name.label('resource_class'), id_.label('resource_class_id')


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


Check = Callable[[Audited], Found]


@dataclass(frozen=True, slots=True)
class Change:
    """A row that a correction changed.

    :ivar identity: names that identify the row
    :ivar before: the changed columns, or all columns of a deleted row; None if the row is new
    :ivar after: the same columns after the change; None if the row was deleted
    :ivar corrected: the number of findings that the change corrected
    """

    identity: Row
    before: Row | None
    after: Row | None
    corrected: int = 1

    def as_row(self) -> Row:
        """Return the change as a row of a finding."""
        return {**self.identity, 'before': self.before, 'after': self.after}


@dataclass(frozen=True, slots=True)
class Repair:
    """Writes the corrections of a code."""

    code: str
    conf: cfg.ConfigOpts
    report: Progress

    def write(
        self, keys: Sequence[Key], work: Callable[[Sequence[Key], sa.Connection], list[Change]]
    ) -> list[Change]:
        """Correct the findings with these keys, `BATCH` of them in a transaction.

        :param keys: identify the findings, as an earlier transaction read them
        :param work: repeats the check of some findings, corrects them, and returns the changes
        """
        changes: list[Change] = []
        if not keys:
            return changes
        with self.report(f'Correcting {self.code}', len(keys)) as advance:
            for start in range(0, len(keys), BATCH):
                batch = keys[start : start + BATCH]
                changes += engine.write(functools.partial(work, batch))
                advance(len(batch))
        return changes


@dataclass(frozen=True, slots=True)
class Correction:
    """How the findings of a code are corrected.

    :ivar order: smaller numbers are corrected first, because they can make larger ones necessary
    :ivar text: what the option does with each finding, for the guide
    :ivar option: the option of the command that requests the correction
    """

    order: int
    text: str
    make: Callable[[Repair], list[Change]]
    option: str = FIX


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
