"""What the modules with checks use: the kinds of findings, their rows, and their correction."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import functools
from typing import Any, NamedTuple

from oslo_config import cfg
import sqlalchemy as sa

from placement import exception
from placement.claims import statements
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import provider_rows

ERROR, NOTICE = 'error', 'notice'
FIX, PURGE, SERVERS = '--fix', '--purge', '--servers'
# The maximum number of rows of each finding that are not changed.
ROW_LIMIT = 100
# In a change, the number of findings that it corrects; without this key, it is 1.
ALLOCATIONS = 'allocations'

_PROVIDERS = models.resource_providers
# The names of a provider.
PROVIDER = (_PROVIDERS.c.name.label('provider'), _PROVIDERS.c.uuid.label('provider_uuid'))
# The columns with the id of another row, and the names of that row.
_REFERENCES: dict[str, Sequence[Any]] = {
    'resource_provider_id': PROVIDER,
    'resource_class_id': [models.resource_classes.c.name.label('resource_class')],
    'trait_id': [models.traits.c.name.label('trait')],
    'aggregate_id': [models.placement_aggregates.c.uuid.label('aggregate_uuid')],
    'project_id': [models.projects.c.external_id.label('project')],
    'user_id': [models.users.c.external_id.label('user')],
    'consumer_type_id': [models.consumer_types.c.name.label('consumer_type')],
}
# The columns with the UUID of a consumer.
_CONSUMER_UUIDS = {
    models.allocations: models.allocations.c.consumer_id,
    models.consumers: models.consumers.c.uuid,
}
# The rows that a driver receives together.
_FETCHED = 10_000

# Rows -----------------------------------------------------------------------------

# The keys of a row are readable names. The values are texts, numbers, lists or None.
Row = Mapping[str, Any]
# The result of a check: the number of findings, and the first of them.
Found = tuple[int, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Audited:
    """The database that the checks read.

    :ivar conn: a connection from `engine.snapshot()`, so that all findings are about one state
    :ivar incomplete_project: the option `[placement] incomplete_consumer_project_id`
    :ivar servers: the rows of the file with the servers, see `console.rows`
    """

    conn: sa.Connection
    incomplete_project: str
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def rows(self, *selects: sa.Select[Any]) -> Found:
        """Count the rows of all selects, and read the first of them.

        The function executes one statement for each select, and one more if it has rows.
        """
        count, rows = 0, list[Row]()
        for select in selects:
            counted = sa.select(sa.func.count()).select_from(select.order_by(None).subquery())
            found = self.conn.execute(counted).scalar_one()
            count += found
            limit = min(found, ROW_LIMIT - len(rows))
            if limit > 0:
                rows += map(_readable, self.conn.execute(select.limit(limit)).mappings())
        return count, rows

    def scalars(self, select: sa.Select[Any]) -> Iterator[Any]:
        """Yield the values of a column that can have a million rows."""
        return iter(self.conn.scalars(select, execution_options={'yield_per': _FETCHED}))


def described(table: sa.Table, *first: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select of all rows of a table, with the names of what they refer to.

    :param first: the columns before the names
    """
    columns = [*first]
    if table in _CONSUMER_UUIDS:
        columns.append(_CONSUMER_UUIDS[table].label('consumer_uuid'))
    source: sa.FromClause = table
    for key, names in _REFERENCES.items():
        if key in table.c:
            other = names[0].element.table
            source = source.outerjoin(other, other.c.id == table.c[key])
            id_ = table.c[key].label(key.replace('resource_provider', 'provider'))
            columns += [*names, id_]
    return sa.select(*columns).select_from(source).order_by(*table.primary_key.columns)


def _readable(row: Mapping[Any, Any]) -> Row:
    """Return a row with either the names or the id of another row.

    A row contains the id of another row only if that row does not exist.
    """
    result = dict(row)
    for id_ in [key for key in row if key.endswith('_id')]:
        name = id_.removesuffix('_id')
        # The UUID is never NULL in a row that exists.
        names = [key for key in (f'{name}_uuid', name) if key in row]
        is_missing = row[id_] is not None and all(row[key] is None for key in names)
        for key in names if is_missing else [id_]:
            del result[key]
    return result


# Corrections ----------------------------------------------------------------------


class Batch(NamedTuple):
    """The findings that one transaction corrects.

    :ivar keys: identify the findings, as an earlier transaction read them
    :ivar conf: the configuration, with the project and the user of incomplete consumers
    """

    keys: Sequence[Sequence[Any]]
    conf: cfg.ConfigOpts


# How findings are corrected: a select of the keys of the findings, and a function that repeats the
# check of a batch, corrects the findings, and returns the changes.
Fix = tuple[sa.Select[Any], Callable[[Batch, sa.Connection], list[Row]]]
# The new values of columns; None deletes the rows.
Values = Mapping[str, sa.ColumnElement[Any]] | None


def rewrites(found: Mapping[sa.Table, sa.Select[Any]], values: Values = None) -> list[Fix]:
    """Return how the rows of tables are corrected.

    :param found: for each table, a select of the findings with the names that identify them
    """
    return [
        (
            select.with_only_columns(*table.primary_key.columns),
            functools.partial(rewrite, table, select, values),
        )
        for table, select in found.items()
    ]


def rewrite(
    table: sa.Table, found: sa.Select[Any], values: Values, batch: Batch, conn: sa.Connection
) -> list[Row]:
    """Lock rows of a table, change or delete those that are still findings; return the changes.

    :param found: a select of the findings with the names that identify them
    :raises exception.ConcurrentChange: a concurrent transaction changed or deleted one of the rows
    """
    _lock(conn, table, batch.keys)
    stored = [column.label(f'stored_{column.name}') for column in table.columns]
    new = [value.label(f'new_{name}') for name, value in (values or {}).items()]
    select = found.add_columns(*stored, *new).where(_have_keys(table, batch.keys))
    changes, keys = list[Row](), []
    for row in conn.execute(select).mappings():
        names = {name: row[name] for name in found.selected_columns.keys()}  # noqa: SIM118
        before = {name: row[f'stored_{name}'] for name in values or table.columns.keys()}
        after = {name: row[f'new_{name}'] for name in values} if values else None
        changes.append({**_readable(names), 'before': before, 'after': after})
        keys.append([row[f'stored_{column.name}'] for column in table.primary_key])
    if keys:
        write = sa.update(table).values(dict(values)) if values else sa.delete(table)
        if conn.execute(write.where(_have_keys(table, keys))).rowcount != len(keys):
            raise exception.ConcurrentChange('A row of the database')
    return changes


def _lock(conn: sa.Connection, table: sa.Table, keys: Sequence[Sequence[Any]]) -> None:
    """Lock what each request locks that changes such rows of a provider or a consumer."""
    if table is _PROVIDERS:
        lock_providers(conn, [id_ for (id_,) in keys])
    elif (uuid := _CONSUMER_UUIDS.get(table)) is not None:
        uuids = conn.scalars(sa.select(uuid).where(_have_keys(table, keys)).distinct())
        conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(uuids)}).all()


def lock_providers(conn: sa.Connection, ids: Collection[int]) -> Collection[Any]:
    """Lock providers and their present roots, in the order of the UUIDs.

    :returns: their rows, see `provider_rows.lock_rows`
    """
    among = _PROVIDERS.c.id.in_(expressions.id_list(ids))
    roots = conn.scalars(sa.select(_PROVIDERS.c.root_provider_id).where(among))
    every = expressions.id_list({*ids, *roots} - {None})
    uuids = conn.scalars(sa.select(_PROVIDERS.c.uuid).where(_PROVIDERS.c.id.in_(every)))
    return provider_rows.lock_rows(conn, uuids.all())


def _have_keys(table: sa.Table, keys: Iterable[Sequence[Any]]) -> sa.ColumnElement[bool]:
    """Return whether a row of a table has one of these primary keys."""
    columns = list(table.primary_key.columns)
    # The database finds the rows by the first column.
    among = columns[0].in_(expressions.id_list({key[0] for key in keys}))
    return sa.and_(among, sa.tuple_(*columns).in_([tuple(key) for key in keys]))


def is_change(row: Row) -> bool:
    """Return whether a row of a finding is about a changed row of the database."""
    return 'before' in row


# Kinds of findings ----------------------------------------------------------------

Check = Callable[[Audited], Found]


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding.

    :ivar meaning: what the check finds
    :ivar severity: `ERROR`, or `NOTICE` if the data is legal
    :ivar fixes: how each table with findings is corrected; empty if only the operator can do that
    :ivar order: smaller numbers are corrected first, because they can make larger ones necessary
    :ivar command: what the operator can execute next; `{key}` is a value of the first row
    :ivar option: `SERVERS` if the check needs this option; otherwise, the option that requests the
        correction
    """

    name: str
    check: Check
    meaning: str
    severity: str = ERROR
    fixes: Sequence[Fix] = ()
    order: int = 9
    command: str = ''
    option: str = FIX


# All kinds of findings, by their names and in the order of the report.
CODES: dict[str, Code] = {}


def finding(severity: str = ERROR, **values: Any) -> Callable[[Check], Check]:
    """Return the decorator of the check of a kind of finding; the parameters are those of `Code`.

    The name of the function is the name of the code, and the first sentence of its docstring is the
    meaning, so that the report and the guide contain the same words as the source.
    """

    def add(check: Check) -> Check:
        name = check.__name__.replace('_', '-')
        meaning, _, _ = (check.__doc__ or '').partition('.')
        CODES[name] = Code(name, check, meaning[:1].lower() + meaning[1:], severity, **values)
        return check

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
