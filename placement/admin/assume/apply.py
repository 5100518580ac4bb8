"""Makes the assumed changes in a private copy of the database.

`placement.cmd.assume` parses the changes, and calls the function that makes each of them. The rules
are those of the API: its functions judge the filters and the values. A change is made for all
matching providers together, because a request would take a millisecond for each of them. The
generations of providers stay the same, because no command reads them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import itertools
import struct
from typing import Any, NamedTuple
import uuid as uuid_lib

import sqlalchemy as sa

from placement import capacity, exception
from placement.admin import cloud, console, named_trees
from placement.admin.assume.private_copy import columns, insert, private_copy
from placement.admin.console import CannotProceedError, Progress
from placement.capacity import Inventory
from placement.db import engine
from placement.db.expressions import id_list
from placement.db.sqlalchemy import models
from placement.objects import provider_search, resource_class, resource_provider
from placement.objects.inventory import COLUMNS
from placement.schemas import PROVIDER_NAME

_PROVIDERS = models.resource_providers
_INVENTORIES = models.inventories
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_TRAITS = models.traits
_AGGREGATES = models.placement_aggregates
# The tables with rows of providers that a copy of a provider has too.
_COPIED = (_INVENTORIES, models.resource_provider_traits, models.resource_provider_aggregates)
_LONGEST_NAME: int = PROVIDER_NAME['maxLength']
# The filters of the providers that a change concerns; None for all providers.
Filters = provider_search.Filters | None
# SQLite limits the number of parameters.
_TEXTS_PER_STATEMENT = 1_000


class World(NamedTuple):
    """The database of the service, which is only read, and its changed copy."""

    source: sa.Connection
    conn: sa.Connection


class Change(NamedTuple):
    """A change that a command assumes.

    :ivar text: the change as the operator wrote it
    :ivar make: makes the change in the copy
    """

    text: str
    make: Callable[[World], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Assumed:
    """The state of the cloud after the changes.

    :ivar conn: the connection from which a command reads this state; without changes, that to the
        database of the service
    :ivar changes: the changes as the operator wrote them, in order
    :ivar over: resource class -> the usage above the capacity that the changes make: the number of
        inventories, and the sum of the amounts in units of the class; only classes with such usage
    :ivar unlisted: the number of `cloud.UNLISTED` providers
    """

    conn: sa.Connection
    changes: tuple[str, ...]
    over: Mapping[str, Mapping[str, int]]
    unlisted: int


@contextlib.contextmanager
def state(
    progress: Progress,
    changes: Sequence[Change],
    consumers_of: Callable[[sa.Connection], Collection[int] | None] = lambda _: frozenset(),
) -> Iterator[Assumed]:
    """Yield the state of the cloud after changes, without changing the database.

    :param consumers_of: returns the ids of the root providers whose consumers are copied as they
        are, with their allocations on all providers; None copies all consumers. For the other
        consumers, the result has only the usage
    :raises CannotProceedError: a change is not possible
    """
    with engine.snapshot() as source:
        if not changes:
            yield Assumed(source, (), {}, source.scalar(cloud.UNLISTED) or 0)
            return
        with private_copy(source, consumers_of(source), progress) as conn:
            before = _exceeded(cloud.read(conn, with_usage=False))
            for change in changes:
                _make(change, World(source, conn))
            after = cloud.read(conn, with_usage=False)
            over = _over(_exceeded(after) - before)
            yield Assumed(conn, tuple(change.text for change in changes), over, after.unlisted)


def _make(change: Change, world: World) -> None:
    try:
        change.make(world)
    # ValueError: a UUID to copy is malformed, or the change is not valid UTF-8.
    except (exception.BadInput, CannotProceedError, ValueError) as error:
        raise refusal(change.text, str(error)) from error


def refusal(text: str, reason: str) -> CannotProceedError:
    """Return the error of a command for a change that is not possible.

    :param text: the change as the operator wrote it
    :param reason: the reason as a sentence
    """
    sentence = f"The assumption '{text}' is not valid: {reason.rstrip('.')}."
    return CannotProceedError(console.printable(sentence))


# Trees ----------------------------------------------------------------------------


def remove_tree(world: World, provider: str) -> None:
    """Delete a tree and its allocations, as if clients had removed these from each consumer.

    :param provider: the name or the UUID of any provider of the tree
    """
    conn, (tree, _) = world.conn, _tree(world.conn, provider)
    of_tree = _ALLOCATIONS.c.resource_provider_id.in_(id_list(tree))
    changed = _CONSUMERS.c.uuid.in_(sa.select(_ALLOCATIONS.c.consumer_id).where(of_tree))
    incremented = sa.update(_CONSUMERS).values(generation=models.generation(_CONSUMERS) + 1)
    conn.execute(incremented.where(changed))
    conn.execute(sa.delete(_ALLOCATIONS).where(of_tree))
    for id_ in tree:
        resource_provider.delete_rows(conn, id_)


def copy_tree(world: World, provider: str, count: int) -> None:
    """Add trees like the tree of a provider, without allocations."""
    conn, (tree, root_id) = world.conn, _tree(world.conn, provider)
    of_tree = _PROVIDERS.c.id.in_(id_list(tree))
    originals = conn.execute(sa.select(_PROVIDERS).where(of_tree).order_by(_PROVIDERS.c.id)).all()
    new_ids = itertools.count((conn.scalar(sa.select(sa.func.max(_PROVIDERS.c.id))) or 0) + 1)
    # For each copy: the id of a provider of the original -> the id of its copy.
    ids = [{row.id: next(new_ids) for row in originals} for _ in range(count)]
    providers: list[dict[str, Any]] = [
        {
            'id': of_copy[row.id],
            'uuid': str(uuid_lib.uuid5(uuid_lib.UUID(row.uuid), f'copy-{number}')),
            'name': f'{row.name}-copy-{number}',
            'generation': 0,
            'root_provider_id': of_copy[root_id],
            'parent_provider_id': of_copy.get(row.parent_provider_id),
        }
        for number, of_copy in enumerate(ids, 1)
        for row in originals
    ]
    _require_unused(world, _PROVIDERS.c.name, [row['name'] for row in providers])
    _require_unused(world, _PROVIDERS.c.uuid, [row['uuid'] for row in providers])
    insert(conn, _PROVIDERS, providers)
    for table in _COPIED:
        copied = [column for column in columns(table) if column.name != 'id']
        statement = sa.select(*copied).where(table.c.resource_provider_id.in_(id_list(tree)))
        rows = [dict(row) for row in conn.execute(statement).mappings()]
        new = (
            {**row, 'resource_provider_id': of_copy[row['resource_provider_id']]}
            for of_copy in ids
            for row in rows
        )
        insert(conn, table, new)


def _tree(conn: sa.Connection, provider: str) -> tuple[list[int], int]:
    """Return the ids of the providers in the tree of a provider, and the id of the root.

    :param provider: the name or the UUID of any provider of the tree
    """
    (root_id,) = named_trees.require_roots(conn, [provider])
    of_tree = sa.select(_PROVIDERS.c.id).where(_PROVIDERS.c.root_provider_id == root_id)
    return list(conn.scalars(of_tree)), root_id


def _require_unused(world: World, column: sa.Column[Any], texts: Sequence[str]) -> None:
    """Check the names or the UUIDs of new providers; the source decides which texts are equal."""
    if len(text := max(texts, key=len)) > _LONGEST_NAME:
        raise CannotProceedError(f"The name '{text}' is longer than {_LONGEST_NAME} characters.")
    for first in range(0, len(texts), _TEXTS_PER_STATEMENT):
        batch = column.in_(texts[first : first + _TEXTS_PER_STATEMENT])
        statement = sa.select(_PROVIDERS.c.id).where(batch)
        ids = {*world.conn.scalars(statement), *world.source.scalars(statement)}
        # An earlier change can have removed a provider of the source.
        taken = sa.select(column).where(_PROVIDERS.c.id.in_(id_list(ids))).limit(1)
        for text in world.conn.scalars(taken):
            raise CannotProceedError(f"The {column.name} '{text}' is taken.")


# Providers ------------------------------------------------------------------------


def _matching(conn: sa.Connection, filters: Filters) -> list[int]:
    """Return the ids of the providers that a change concerns."""
    if filters is None:
        return provider_search.ids_of_matching(conn, provider_search.Filters())
    if found := provider_search.ids_of_matching(conn, filters):
        return found
    raise CannotProceedError('No resource provider matches the filter.')


def set_field(
    world: World, filters: Filters, class_name: str, field: str, value: int | float
) -> None:
    """Change a field of the inventories of a resource class."""
    conn = world.conn
    class_id = resource_class.ids(conn, [class_name])[class_name]
    if field == 'allocation_ratio':
        value = _stored_ratio(world.source, value)
    concerned = sa.and_(
        _INVENTORIES.c.resource_class_id == class_id,
        _INVENTORIES.c.resource_provider_id.in_(id_list(_matching(conn, filters))),
    )
    rows = conn.execute(
        sa.select(*COLUMNS, _PROVIDERS.c.uuid)
        .join_from(_INVENTORIES, _PROVIDERS, _PROVIDERS.c.id == _INVENTORIES.c.resource_provider_id)
        .where(concerned)
        .order_by(_PROVIDERS.c.id)
    )
    new: dict[str, Any] = {field: value}
    for *fields, uuid in rows:
        changed = dataclasses.replace(Inventory(*fields), **new)
        if not capacity.allows_reservation(changed, may_reserve_all=True):
            raise exception.InvalidInventoryCapacity(class_name, uuid)
    conn.execute(sa.update(_INVENTORIES).where(concerned).values(new))


def _stored_ratio(source: sa.Connection, ratio: float) -> float:
    """Return the ratio that a client reads after the database has stored it.

    The column has single precision on MySQL, and the server returns six significant digits.
    """
    if source.dialect.name != 'mysql':
        return ratio
    (single,) = struct.unpack('f', struct.pack('f', ratio))
    return float(f'{single:.6g}')


def set_trait(world: World, filters: Filters, name: str, present: bool) -> None:
    """Add a trait to providers, or remove it from them."""
    trait_id = world.conn.scalar(sa.select(_TRAITS.c.id).where(_TRAITS.c.name == name))
    if trait_id is None:
        raise exception.UnknownTraits([name])
    _set_links(world.conn, models.resource_provider_traits.c.trait_id, trait_id, filters, present)


def set_aggregate(world: World, filters: Filters, uuid: str, present: bool) -> None:
    """Add providers to an aggregate, or remove them from it."""
    statement = sa.select(_AGGREGATES.c.id).where(_AGGREGATES.c.uuid == uuid)
    # The source decides whether the UUID equals that of an existing aggregate.
    aggregate_id = world.conn.scalar(statement) or world.source.scalar(statement)
    if aggregate_id is None:
        aggregate_id = (world.conn.scalar(sa.select(sa.func.max(_AGGREGATES.c.id))) or 0) + 1
        insert(world.conn, _AGGREGATES, [{'id': aggregate_id, 'uuid': uuid}])
    column = models.resource_provider_aggregates.c.aggregate_id
    _set_links(world.conn, column, aggregate_id, filters, present)


def _set_links(
    conn: sa.Connection, column: sa.Column[int], id_: int, filters: Filters, present: bool
) -> None:
    """Add a trait or an aggregate to providers, or remove it from them.

    :param column: the column with the id of the trait or of the aggregate
    """
    table, provider_ids = column.table, _matching(conn, filters)
    concerned = sa.and_(column == id_, table.c.resource_provider_id.in_(id_list(provider_ids)))
    conn.execute(sa.delete(table).where(concerned))
    if present:
        rows = ({'resource_provider_id': one, column.name: id_} for one in provider_ids)
        insert(conn, table, rows)


# Usage above the capacity ---------------------------------------------------------


def _exceeded(found: cloud.Cloud) -> Counter[tuple[int, str]]:
    """Return (provider id, class name) -> the usage above the capacity of the inventory."""
    exceeded = {
        (provider.id, found.class_name(class_id)): one.used - int(one.capacity)
        for provider in found.providers
        for class_id, one in provider.inventories.items()
        if one.used
    }
    return +Counter(exceeded)


def _over(exceeded: Counter[tuple[int, str]]) -> dict[str, dict[str, int]]:
    """Return the usage above the capacity by resource class."""
    over: dict[str, dict[str, int]] = {}
    for name, amount in sorted((name, amount) for (_, name), amount in exceeded.items()):
        of_class = over.setdefault(name, {'inventories': 0, 'amount': 0})
        of_class['inventories'] += 1
        of_class['amount'] += amount
    return over
