"""`placement-manage rename-uuid`: give the data of a provider to another UUID.

`_read` reads what the decision depends on, `_changes` decides, and `rename` locks, reads, decides,
and writes in one transaction. The locks are those of a claim: first the consumers, then the
providers, both in the order of their UUIDs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement import exception, grammar
from placement.admin import console, named_trees
from placement.admin.console import CannotProceedError
from placement.capacity import InventoryKey, InventoryUsage, fits
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
    'aggregate': (_AGGREGATE_LINKS.c.aggregate_id, models.placement_aggregates.c.uuid),
    'trait': (models.resource_provider_traits.c.trait_id, models.traits.c.name),
}
_PROVIDER = sa.select(
    *_PROVIDERS.c['id', 'uuid', 'name', 'root_provider_id', 'parent_provider_id'],
    models.generation(_PROVIDERS),
)
# The id and the generation are those of the consumer. They are NULL and 0 if it does not exist, and
# the class is NULL if it does not exist.
_ALLOCATION = (
    sa.select(
        _ALLOCATIONS.c.consumer_id.label('consumer'),
        _CONSUMERS.c.id,
        models.generation(_CONSUMERS),
        _CLASSES.c.name.label('resource_class'),
        _ALLOCATIONS.c.used,
    )
    .outerjoin(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
    .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .where(_ALLOCATIONS.c.resource_provider_id == sa.bindparam('provider_id'))
    .order_by(_ALLOCATIONS.c.consumer_id, _CLASSES.c.name)
)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the decision depends on: rows of `_PROVIDER` and `_ALLOCATION`, inventories, and links.

    :ivar new: None if no provider has the UUID NEW; then the last fields are empty
    :ivar children: the other providers in the tree of OLD
    :ivar allocations: those from OLD
    :ivar kept: the consumers and the classes of the allocations from NEW
    :ivar inventories: those of OLD and NEW
    :ivar links_of_old: the kind of each link, with the name and the id of the linked row
    """

    old: Any
    new: Any
    new_uuid: str
    children: Sequence[Any] = ()
    allocations: Sequence[Any] = ()
    kept: Sequence[tuple[str, str]] = ()
    inventories: Mapping[InventoryKey, InventoryUsage] = field(default_factory=dict)
    links_of_old: Sequence[tuple[str, str, int]] = ()
    links_of_new: Sequence[tuple[str, str, int]] = ()

    @property
    def consumers(self) -> dict[str, Any]:
        """An allocation of each consumer with allocations from OLD, by the UUID of the consumer."""
        return {one.consumer: one for one in self.allocations}


def plan(old: str, new: str) -> list[str]:
    """Return what `rename` would change: a sentence, and a line for each row.

    :param old: the name or the UUID of a provider
    :param new: the name or the UUID of a provider, or another UUID
    :raises CannotProceedError: the change is not possible
    """
    with engine.snapshot() as conn:
        return _changes(_read(conn, old, new))


def rename(old: str, new: str, confirmed: Sequence[str] | None = None) -> list[str]:
    """Make the change, and return the same as `plan`.

    :param confirmed: the only acceptable change; None accepts any
    :raises CannotProceedError: the change is not possible, or differs from the confirmed one;
        nothing was changed
    """

    def work(conn: sa.Connection) -> list[str]:
        facts = _read(conn, old, new)
        providers = {one.uuid for one in (facts.old, *facts.children, facts.new) if one}
        conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(facts.consumers)}).all()
        provider_rows.lock_rows(conn, providers)
        if _read(conn, old, new) != facts:
            raise exception.ConcurrentChange('A resource provider or one of its consumers')
        changes = _changes(facts)
        if confirmed is not None and changes != confirmed:
            raise CannotProceedError(
                'The data has changed since it was printed, so nothing was changed. Stop '
                'nova-compute of the host, and run the command again.'
            )
        _write(conn, facts)
        return changes

    return engine.write(work)


# Reading --------------------------------------------------------------------------


def _read(conn: sa.Connection, old_name: str, new_name: str) -> _Facts:
    """Read both providers, the tree of OLD, and what belongs to them.

    :raises CannotProceedError: OLD does not exist, NEW is not a UUID and does not exist, or both
        are the same
    """
    old_uuid = named_trees.require(conn, [old_name])[old_name].uuid
    named = named_trees.find(conn, [new_name]).get(new_name)
    try:
        new_uuid = named.uuid if named else grammar.normalize_uuid(new_name)
    except ValueError as error:
        raise CannotProceedError(
            f"'{console.printable(new_name)}' is neither a UUID nor the name of a resource "
            'provider.'
        ) from error
    if old_uuid.lower() == new_uuid.lower():
        raise CannotProceedError('OLD and NEW are the same UUID.')
    old = conn.execute(_PROVIDER.where(_PROVIDERS.c.uuid == old_uuid)).one()
    new = conn.execute(_PROVIDER.where(_PROVIDERS.c.uuid == new_uuid)).first()
    if new is None:
        return _Facts(old, None, new_uuid)
    links = _PROVIDERS.c['root_provider_id', 'parent_provider_id']
    in_tree = sa.or_(*(link == old.id for link in links))
    children = _PROVIDER.where(in_tree, _PROVIDERS.c.id != old.id).order_by(_PROVIDERS.c.uuid)
    of_new = conn.execute(_ALLOCATION, {'provider_id': new.id}).all()
    return _Facts(
        old,
        new,
        new.uuid,
        children=conn.execute(children).all(),
        allocations=conn.execute(_ALLOCATION, {'provider_id': old.id}).all(),
        kept=[(one.consumer, one.resource_class) for one in of_new],
        inventories=inventory.read_with_usage(conn, [old.id, new.id]),
        links_of_old=_links(conn, old.id),
        links_of_new=_links(conn, new.id),
    )


def _links(conn: sa.Connection, provider_id: int) -> list[tuple[str, str, int]]:
    links = []
    for kind, (key, name) in _LINKS.items():
        linked = sa.select(name, key).join_from(key.table, name.table, key == name.table.c.id)
        rows = conn.execute(linked.where(key.table.c.resource_provider_id == provider_id))
        links += [(kind, text, id_) for text, id_ in rows]
    return sorted(links)


# Deciding -------------------------------------------------------------------------


def _changes(facts: _Facts) -> list[str]:
    """Return a sentence, and a line for each row that changes, with its values before and after.

    :raises CannotProceedError: the contents of the database do not allow the change
    """
    _require_root('OLD', facts.old)
    if facts.new is not None:
        _require_root('NEW', facts.new)
        _check_allocations(facts)
    return list(map(console.printable, _lines(facts)))


def _require_root(which: str, provider: Any) -> None:
    if provider.root_provider_id != provider.id or provider.parent_provider_id is not None:
        raise CannotProceedError(
            f'{which} ({provider.uuid}) is not the root of its tree. If it should be, run '
            '`placement-manage audit`.'
        )


def _check_allocations(facts: _Facts) -> None:
    moved: Counter[str] = Counter()
    for one in facts.allocations:
        if (one.consumer, one.resource_class) in facts.kept:
            raise CannotProceedError(
                f'Consumer {one.consumer} has allocations of {one.resource_class} from both '
                'providers. Remove those that it does not use.'
            )
        if one.id is None or one.resource_class is None:
            raise CannotProceedError(
                f'The consumer {one.consumer} or the class of its allocation does not exist. Run '
                '`placement-manage audit`.'
            )
        moved[one.resource_class] += one.used
    new = f'NEW ({facts.new.uuid})'
    for name, amount in sorted(moved.items()):
        found = facts.inventories.get((facts.new.id, name))
        if found is None:
            raise CannotProceedError(f'{new} has no inventory of {name}.')
        used, limit = found.used + amount, found.inventory.capacity
        if not fits(amount, found.used, limit):
            raise CannotProceedError(
                f'{new} would have {used} {name} in use, and its capacity is {int(limit)}.'
            )


def _lines(facts: _Facts) -> Iterator[str]:
    old, new = facts.old, facts.new
    if new is None:
        yield f'{old.name} gets the UUID {facts.new_uuid}. Nothing else changes.'
        yield f'provider {old.name}: uuid {old.uuid} -> uuid {facts.new_uuid}'
        return
    number = console.count(len(facts.allocations), 'allocation')
    yield f'{number} of {old.name} (OLD) will be from {new.name} (NEW), and OLD is deleted.'
    for one in facts.allocations:
        row = f'{one.consumer} {one.resource_class} {one.used}'
        yield f'allocation {row}: provider OLD -> provider NEW'
    for consumer, one in sorted(facts.consumers.items()):
        seen = one.generation
        yield f'consumer {consumer}: generation {seen} -> generation {seen + 1}'
    for one in facts.children:
        before, after = (f'generation {one.generation + by}' for by in (0, 1))
        yield f'provider {one.name} {one.uuid}: root OLD, {before} -> root NEW, {after}'
    for link in facts.links_of_old:
        after = 'deleted' if link in facts.links_of_new else 'provider NEW'
        yield f'{link[0]} {link[1]}: provider OLD -> {after}'
    for (provider_id, name), stored in sorted(facts.inventories.items()):
        if provider_id == old.id:
            yield f'inventory {name}: provider OLD, total {stored.inventory.total} -> deleted'
    yield f'provider {old.name} {old.uuid}: generation {old.generation} -> deleted'
    seen = new.generation
    yield f'provider {new.name} {new.uuid}: generation {seen} -> generation {seen + 1}'


# Writing --------------------------------------------------------------------------


def _write(conn: sa.Connection, facts: _Facts) -> None:
    """Change the rows, which are locked, and delete OLD if there is NEW.

    :raises exception.ConcurrentChange: a concurrent transaction changed the same rows
    """
    old, new = facts.old, facts.new
    if new is None:
        this_row = sa.update(_PROVIDERS).where(_PROVIDERS.c.id == old.id)
        conn.execute(this_row.values(uuid=facts.new_uuid))
        return
    of_old = _ALLOCATIONS.c.resource_provider_id == old.id
    move = sa.update(_ALLOCATIONS).where(of_old).values(resource_provider_id=new.id)
    if conn.execute(move).rowcount != len(facts.allocations):
        raise exception.ConcurrentChange('The set of allocations of a resource provider')
    generation.increment_consumers(conn, _seen(facts.consumers.values()))
    generation.increment_providers(conn, _seen([*facts.children, new]))
    parent = _PROVIDERS.c.parent_provider_id
    below = sa.update(_PROVIDERS).where(_PROVIDERS.c.id.in_([one.id for one in facts.children]))
    parent_after = sa.case((parent == old.id, new.id), else_=parent)
    conn.execute(below.values(root_provider_id=new.id, parent_provider_id=parent_after))
    for kind, _, id_ in set(facts.links_of_old) - set(facts.links_of_new):
        key, _ = _LINKS[kind]
        link = sa.update(key.table).where(key == id_, key.table.c.resource_provider_id == old.id)
        conn.execute(link.values(resource_provider_id=new.id))
    resource_provider.delete_rows(conn, old.id)


def _seen(rows: Iterable[Any]) -> dict[int, int]:
    return {one.id: one.generation for one in rows}
