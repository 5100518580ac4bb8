"""`placement-manage rename-uuid`: give the data of a provider to another UUID.

`read` reads what the decision depends on, `judge` decides, and `rename` locks, reads, judges, and
writes in one transaction. The locks are those of a claim: first the consumers, then the providers,
both in the order of their UUIDs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement import capacity, exception, grammar
from placement.admin import named_trees, tables
from placement.admin.failure import CannotProceedError
from placement.capacity import InventoryKey, InventoryUsage
from placement.claims import statements
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import generation, inventory, provider_rows, resource_provider

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_CLASSES = models.resource_classes
_AGGREGATE_LINKS = models.resource_provider_aggregates
# For each kind of link between a provider and another row: the column with the id of that row, and
# the column with its name.
_LINKS = {
    'trait': (models.resource_provider_traits.c.trait_id, models.traits.c.name),
    'aggregate': (_AGGREGATE_LINKS.c.aggregate_id, models.placement_aggregates.c.uuid),
}


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of the tree of OLD, or NEW."""

    id: int
    uuid: str
    name: str | None
    generation: int
    root_id: int | None
    parent_id: int | None


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocation from OLD.

    :ivar consumer_id: None if the consumer does not exist
    :ivar resource_class: None if the class does not exist
    """

    consumer_uuid: str
    consumer_id: int | None
    consumer_generation: int
    resource_class: str | None
    used: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What the decision depends on.

    :ivar new: None if no provider has the UUID NEW
    :ivar children: the other providers in the tree of OLD
    :ivar allocations: the allocations from OLD
    :ivar double: the consumers with allocations of the same class from OLD and NEW, and the class
    :ivar inventories: the inventories of OLD and NEW
    :ivar links: the kind of the link, the id of the provider, and the name of the linked row
    """

    old: Provider
    new: Provider | None
    children: Sequence[Provider]
    allocations: Sequence[Allocation]
    double: Sequence[tuple[str, str]]
    inventories: Mapping[InventoryKey, InventoryUsage]
    links: frozenset[tuple[str, int, str]]


@dataclass(frozen=True, slots=True)
class Change:
    """A row that changes, with its values as texts. `after` can be `deleted`."""

    table: str
    row: str
    before: str
    after: str


_COLUMNS = (
    _PROVIDERS.c.id,
    _PROVIDERS.c.uuid,
    _PROVIDERS.c.name,
    models.generation(_PROVIDERS),
    _PROVIDERS.c.root_provider_id,
    _PROVIDERS.c.parent_provider_id,
)


def read(conn: sa.Connection, old_uuid: str, new_uuid: str) -> Facts:
    """Read both providers, the tree of OLD, and what belongs to them.

    :raises CannotProceedError: OLD does not exist
    """
    old = _provider(conn, old_uuid)
    new = _provider(conn, new_uuid)
    if old is None:
        raise CannotProceedError(f'No resource provider has the UUID {old_uuid}.')
    ids = [old.id] if new is None else [old.id, new.id]
    tree = sa.or_(
        _PROVIDERS.c.root_provider_id == old.id, _PROVIDERS.c.parent_provider_id == old.id
    )
    children = sa.select(*_COLUMNS).where(tree, _PROVIDERS.c.id != old.id)
    return Facts(
        old=old,
        new=new,
        children=[Provider(*row) for row in conn.execute(children.order_by(_PROVIDERS.c.uuid))],
        allocations=_allocations(conn, old.id),
        double=[] if new is None else _double(conn, old.id, new.id),
        inventories=inventory.read_with_usage(conn, ids),
        links=frozenset(_links(conn, ids)),
    )


def _provider(conn: sa.Connection, own: str) -> Provider | None:
    row = conn.execute(sa.select(*_COLUMNS).where(_PROVIDERS.c.uuid == own)).first()
    return Provider(*row) if row else None


def _allocations(conn: sa.Connection, provider_id: int) -> list[Allocation]:
    query = (
        sa.select(
            _ALLOCATIONS.c.consumer_id,
            _CONSUMERS.c.id,
            models.generation(_CONSUMERS),
            _CLASSES.c.name,
            _ALLOCATIONS.c.used,
        )
        .outerjoin(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
        .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
        .where(_ALLOCATIONS.c.resource_provider_id == provider_id)
        .order_by(_ALLOCATIONS.c.consumer_id, _CLASSES.c.name)
    )
    return [Allocation(*row) for row in conn.execute(query)]


def _double(conn: sa.Connection, old_id: int, new_id: int) -> list[tuple[str, str]]:
    other = _ALLOCATIONS.alias('other')
    query = (
        sa.select(_ALLOCATIONS.c.consumer_id, _CLASSES.c.name)
        .join(
            other,
            sa.and_(
                other.c.consumer_id == _ALLOCATIONS.c.consumer_id,
                other.c.resource_class_id == _ALLOCATIONS.c.resource_class_id,
            ),
        )
        .join(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
        .where(
            _ALLOCATIONS.c.resource_provider_id == old_id, other.c.resource_provider_id == new_id
        )
        .order_by(_ALLOCATIONS.c.consumer_id, _CLASSES.c.name)
    )
    return [(row[0], row[1]) for row in conn.execute(query)]


def _links(conn: sa.Connection, ids: Sequence[int]) -> Iterator[tuple[str, int, str]]:
    for kind, (key, name) in _LINKS.items():
        provider_id = key.table.c.resource_provider_id
        query = (
            sa.select(provider_id, name)
            .join(name.table, name.table.c.id == key)
            .where(provider_id.in_(ids))
        )
        yield from ((kind, row[0], row[1]) for row in conn.execute(query))


def judge(facts: Facts, new_uuid: str) -> list[Change]:
    """Return the rows that change.

    :raises CannotProceedError: the contents of the database do not allow the change
    """
    old, new = facts.old, facts.new
    _require_root('OLD', old)
    if new is None:
        return [Change('provider', str(old.name), f'uuid {old.uuid}', f'uuid {new_uuid}')]
    if new.id in {old.id, *(child.id for child in facts.children)}:
        raise CannotProceedError(f'NEW ({new.uuid}) is in the tree of OLD ({old.uuid}).')
    _require_root('NEW', new)
    _check_allocations(facts, new)
    return list(_changes(facts, new))


def _require_root(which: str, provider: Provider) -> None:
    if provider.root_id != provider.id or provider.parent_id is not None:
        raise CannotProceedError(
            f'{which} ({provider.uuid}) is not the root of its tree. If it should be, run '
            '`placement-manage audit`.'
        )


def _check_allocations(facts: Facts, new: Provider) -> None:
    if facts.double:
        consumer, name = facts.double[0]
        raise CannotProceedError(
            f'Consumer {consumer} has allocations of {name} from both providers. Remove those that '
            'it does not use.'
        )
    moved: dict[str, int] = {}
    for allocation in facts.allocations:
        if allocation.consumer_id is None or allocation.resource_class is None:
            raise CannotProceedError(
                f'The consumer {allocation.consumer_uuid} or the class of its allocation does not '
                'exist. Run `placement-manage audit`.'
            )
        name = allocation.resource_class
        moved[name] = moved.get(name, 0) + allocation.used
    for name, amount in sorted(moved.items()):
        inventory = facts.inventories.get((new.id, name))
        if inventory is None:
            raise CannotProceedError(f'NEW ({new.uuid}) has no inventory of {name}.')
        limit = inventory.inventory.capacity
        if not capacity.fits(amount, inventory.used, limit):
            raise CannotProceedError(
                f'NEW ({new.uuid}) would have {inventory.used + amount} {name} in use, and its '
                f'capacity is {int(limit)}.'
            )


def _changes(facts: Facts, new: Provider) -> Iterator[Change]:
    old = facts.old
    for one in facts.allocations:
        row = f'{one.consumer_uuid} {one.resource_class} {one.used}'
        yield Change('allocation', row, 'provider OLD', 'provider NEW')
    for consumer, seen in sorted(_consumers(facts).values()):
        yield _incremented('consumer', consumer, seen)
    for child in facts.children:
        yield Change(
            'provider',
            f'{child.name} {child.uuid}',
            f'root OLD, generation {child.generation}',
            f'root NEW, generation {child.generation + 1}',
        )
    moved = _missing_links(facts, new)
    for kind, provider_id, name in sorted(facts.links):
        if provider_id == old.id:
            after = 'provider NEW' if (kind, name) in moved else 'deleted'
            yield Change(kind, name, 'provider OLD', after)
    for provider_id, name in sorted(facts.inventories):
        if provider_id == old.id:
            total = facts.inventories[provider_id, name].inventory.total
            yield Change('inventory', name, f'provider OLD, total {total}', 'deleted')
    yield Change('provider', f'{old.name} {old.uuid}', f'generation {old.generation}', 'deleted')
    yield _incremented('provider', f'{new.name} {new.uuid}', new.generation)


def _incremented(table: str, row: str, seen: int) -> Change:
    return Change(table, row, f'generation {seen}', f'generation {seen + 1}')


def _consumers(facts: Facts) -> dict[int, tuple[str, int]]:
    """Return the UUID and the generation of each consumer of OLD, keyed by id."""
    return {
        one.consumer_id: (one.consumer_uuid, one.consumer_generation)
        for one in facts.allocations
        if one.consumer_id is not None
    }


def _missing_links(facts: Facts, new: Provider) -> set[tuple[str, str]]:
    """Return the links of OLD that NEW lacks: the kind, and the name of the linked row."""
    of_old = {(kind, name) for kind, id_, name in facts.links if id_ == facts.old.id}
    return of_old - {(kind, name) for kind, id_, name in facts.links if id_ == new.id}


def uuids_of(old: str, new: str) -> tuple[str, str]:
    """Return the UUIDs that the arguments of the command name.

    :param old: the name or the UUID of a provider
    :param new: the name or the UUID of a provider, or another UUID
    :raises CannotProceedError: OLD does not exist, NEW is not a UUID and does not exist, or both
        are the same
    """
    with engine.snapshot() as conn:
        old_uuid = named_trees.require(conn, [old])[old].uuid
        named = named_trees.find(conn, [new]).get(new)
    try:
        new_uuid = named.uuid if named else grammar.normalize_uuid(new)
    except ValueError as error:
        raise CannotProceedError(
            f"'{tables.printable(new)}' is neither a UUID nor the name of a resource provider."
        ) from error
    if old_uuid.lower() == new_uuid.lower():
        raise CannotProceedError('OLD and NEW are the same UUID.')
    return old_uuid, new_uuid


def plan(old: str, new: str) -> list[Change]:
    """Return the rows that `rename` would change, without changing them.

    :raises CannotProceedError: the change is not possible
    """
    with engine.snapshot() as conn:
        return judge(read(conn, old, new), new)


def rename(old: str, new: str, confirmed: Sequence[Change] | None = None) -> list[Change]:
    """Make the change, and return the changed rows.

    :param confirmed: the only acceptable changes; None accepts all
    :raises CannotProceedError: the change is not possible, or differs from the confirmed one;
        nothing was changed
    """

    def work(conn: sa.Connection) -> list[Change]:
        facts = _lock_and_read(conn, old, new)
        changes = judge(facts, new)
        if confirmed is not None and changes != list(confirmed):
            raise CannotProceedError(
                'The data has changed since it was printed, so nothing was changed. Stop '
                'nova-compute of the host, and run the command again.'
            )
        if facts.new is None:
            _set(conn, [facts.old.id], uuid=new)
        else:
            _merge(conn, facts, facts.new)
        return changes

    return engine.write(work)


def _lock_and_read(conn: sa.Connection, old: str, new: str) -> Facts:
    """Lock everything that `read` returns, and read it again.

    :raises exception.ConcurrentChange: a concurrent transaction added rows that are not locked
    """
    before = read(conn, old, new)
    consumers = {one.consumer_uuid for one in before.allocations}
    conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(consumers)}).all()
    locked = {row.id for row in provider_rows.lock_rows(conn, _uuids(before).values())}
    facts = read(conn, old, new)
    unlocked = {one.consumer_uuid for one in facts.allocations} - consumers
    if unlocked or locked != _uuids(facts).keys():
        raise exception.ConcurrentChange('A resource provider or one of its consumers')
    return facts


def _uuids(facts: Facts) -> dict[int, str]:
    """Return the UUIDs of all providers, keyed by id."""
    providers = [facts.old, *facts.children, *([facts.new] if facts.new else [])]
    return {one.id: one.uuid for one in providers}


def _merge(conn: sa.Connection, facts: Facts, new: Provider) -> None:
    """Move everything from OLD to NEW, and delete OLD."""
    old = facts.old
    moved = conn.execute(
        sa.update(_ALLOCATIONS)
        .where(_ALLOCATIONS.c.resource_provider_id == old.id)
        .values(resource_provider_id=new.id)
    ).rowcount
    if moved != len(facts.allocations):
        raise exception.ConcurrentChange('The set of allocations of a resource provider')
    generation.increment_consumers(
        conn, {id_: seen for id_, (_, seen) in _consumers(facts).items()}
    )
    below = [child.id for child in facts.children if child.parent_id == old.id]
    if below:
        _set(conn, below, parent_provider_id=new.id)
    if facts.children:
        _set(conn, [child.id for child in facts.children], root_provider_id=new.id)
    missing = _missing_links(facts, new)
    for kind, (key, name) in _LINKS.items():
        names = [linked for of_kind, linked in missing if of_kind == kind]
        ids = sa.select(name.table.c.id).where(name.in_(names))
        of_old = key.table.c.resource_provider_id == old.id
        update = sa.update(key.table).where(of_old, key.in_(ids))
        conn.execute(update.values(resource_provider_id=new.id))
    generation.increment_providers(conn, {one.id: one.generation for one in (new, *facts.children)})
    resource_provider.delete_rows(conn, old.id)


def _set(conn: sa.Connection, ids: Sequence[int], **values: Any) -> None:
    """Update providers.

    :raises exception.ConcurrentChange: a concurrent transaction deleted one of them
    """
    update = sa.update(_PROVIDERS).where(_PROVIDERS.c.id.in_(ids)).values(**values)
    if conn.execute(update).rowcount != len(ids):
        raise exception.ConcurrentChange('A resource provider')


def render(changes: Sequence[Change]) -> str:
    """Return a line for each changed row."""
    return '\n'.join(
        tables.printable(f'{one.table} {one.row}: {one.before} -> {one.after}') for one in changes
    )
