"""Changes that a command assumes: the option `--assume`.

`placement.cmd.assume` parses the changes. The functions of this module return the cloud after a
change, and `explain`, `headroom`, and `drain` read it as if the database had the change. Only the
consumers, the names of queries, and the spellings of UUIDs come from the database (see
`cloud.Cloud.removed` and `cloud.look_up`). The rules are those of the API: its functions judge the
filters and the values. The generations of providers stay the same, because no command reads them.
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
from placement.admin.cloud import Cloud
from placement.admin.console import CannotProceedError, Progress
from placement.candidates import eligibility, model, request
from placement.candidates.model import Provider
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import provider_search
from placement.schemas import PROVIDER_NAME

_PROVIDERS = models.resource_providers
_AGGREGATES = models.placement_aggregates
_LONGEST_NAME: int = PROVIDER_NAME['maxLength']
# The filters of the providers that a change concerns; None for all providers.
Filters = provider_search.Filters | None
# SQLite limits the number of parameters.
_TEXTS_PER_STATEMENT = 1_000


class Change(NamedTuple):
    """A change that a command assumes.

    :ivar text: the change as the operator wrote it
    :ivar make: returns the cloud after the change; the connection is that of `state`
    """

    text: str
    make: Callable[[sa.Connection, Cloud], Cloud]


@dataclasses.dataclass(frozen=True, slots=True)
class Assumed:
    """The state of the cloud after the changes.

    :ivar conn: the connection to the database, which does not have the changes
    :ivar cloud: the cloud with the changes, without the usage of projects
    :ivar changes: the changes as the operator wrote them, in order
    :ivar over: resource class -> the usage above the capacity that the changes make: the number of
        inventories, and the sum of the amounts in units of the class; only classes with such usage
    """

    conn: sa.Connection
    cloud: Cloud
    changes: tuple[str, ...]
    over: Mapping[str, Mapping[str, int]]


@contextlib.contextmanager
def state(progress: Progress, changes: Sequence[Change]) -> Iterator[Assumed]:
    """Yield the state of the cloud after changes, without changing the database.

    :raises CannotProceedError: a change is not possible
    """
    with engine.snapshot() as conn:
        found = before = cloud.read(conn, progress, with_usage=False)
        for change in changes:
            try:
                found = change.make(conn, found)
            except (exception.BadInput, CannotProceedError) as error:
                raise refusal(change.text, str(error)) from error
        over = _over(_exceeded(found) - _exceeded(before)) if changes else {}
        yield Assumed(conn, found, tuple(change.text for change in changes), over)


def refusal(text: str, reason: str) -> CannotProceedError:
    """Return the error of a command for a change that is not possible.

    :param text: the change as the operator wrote it
    :param reason: the reason as a sentence
    """
    sentence = f"The assumption '{text}' is not valid: {reason.rstrip('.')}."
    return CannotProceedError(console.printable(sentence))


# Trees ----------------------------------------------------------------------------


def remove_tree(_conn: sa.Connection, found: Cloud, provider: str) -> Cloud:
    """Remove a tree, as if clients had removed its allocations from each consumer.

    :param provider: the name or the UUID of any provider of the tree
    """
    tree = frozenset(one.id for one in _tree(found, provider))
    remaining = [one for one in found.providers if one.id not in tree]
    return dataclasses.replace(found, providers=remaining, removed=(*found.removed, tree))


def copy_tree(conn: sa.Connection, found: Cloud, provider: str, count: int) -> Cloud:
    """Add trees like the tree of a provider, without allocations."""
    originals = [_without_usage(one) for one in _tree(found, provider)]
    # No copy has the id of a removed provider.
    new_ids = itertools.count(max(found.names) + 1)
    copies, names = [], dict(found.names)
    for number in range(1, count + 1):
        ids = {one.id: next(new_ids) for one in originals}
        for one in originals:
            copy = one._replace(
                id=ids[one.id],
                uuid=_uuid_of_copy(one.uuid, number),
                root_id=ids[one.root_id],
                parent_id=ids.get(one.parent_id or 0),
            )
            copies.append(copy)
            names[copy.id] = f'{found.names[one.id]}-copy-{number}'
    used = {one.id: found.names[one.id] for one in found.providers}
    _require_unused(conn, _PROVIDERS.c.name, used, [names[one.id] for one in copies])
    used = {one.id: one.uuid for one in found.providers}
    _require_unused(conn, _PROVIDERS.c.uuid, used, [one.uuid for one in copies])
    return dataclasses.replace(found, providers=[*found.providers, *copies], names=names)


def _tree(found: Cloud, provider: str) -> list[Provider]:
    """Return the tree of a provider.

    :param provider: the name or the UUID of any provider of the tree
    """
    (root_id,) = named_trees.require_roots(found, [provider])
    return [one for one in found.providers if one.root_id == root_id]


def _without_usage(provider: Provider) -> Provider:
    unused = {id_: one._replace(used=0) for id_, one in provider.inventories.items()}
    return provider._replace(inventories=unused)


def _uuid_of_copy(uuid: str, number: int) -> str:
    try:
        return str(uuid_lib.uuid5(uuid_lib.UUID(uuid), f'copy-{number}'))
    except ValueError as error:
        raise CannotProceedError(str(error)) from error


def _require_unused(
    conn: sa.Connection, column: sa.Column[str], used: Mapping[int, str], texts: Sequence[str]
) -> None:
    """Check the names or the UUIDs of new providers; the database decides which texts are equal.

    :param used: the names or the UUIDs of the present providers, by id
    """
    if len(text := max(texts, key=len)) > _LONGEST_NAME:
        raise CannotProceedError(f"The name '{text}' is longer than {_LONGEST_NAME} characters.")
    # The database lacks earlier copies, and still has removed providers.
    taken = set(texts).intersection(used.values())
    for first in range(0, len(texts), _TEXTS_PER_STATEMENT):
        batch = column.in_(texts[first : first + _TEXTS_PER_STATEMENT])
        rows = conn.execute(sa.select(_PROVIDERS.c.id, column).where(batch))
        taken.update(text for id_, text in rows if id_ in used)
    if taken:
        raise CannotProceedError(f"The {column.name} '{min(taken)}' is taken.")


# Providers ------------------------------------------------------------------------


def set_field(
    conn: sa.Connection, found: Cloud, class_name: str, new: dict[str, Any], filters: Filters = None
) -> Cloud:
    """Change a field of the inventories of a resource class.

    :param new: the name of the field, and its value
    """
    class_id = found.ids.classes.get(class_name)
    if class_id is None:
        raise exception.UnknownResourceClasses([class_name])
    if 'allocation_ratio' in new:
        new = {'allocation_ratio': _stored_ratio(conn, new['allocation_ratio'])}

    def change(provider: Provider) -> Provider:
        if class_id not in provider.inventories:
            return provider
        inventory = provider.inventories[class_id]._replace(**new)
        total, ratio = inventory.total, inventory.allocation_ratio
        changed = capacity.Inventory(total, inventory.reserved, allocation_ratio=ratio)
        if not capacity.allows_reservation(changed, may_reserve_all=True):
            raise exception.InvalidInventoryCapacity(class_name, provider.uuid)
        return provider._replace(inventories={**provider.inventories, class_id: inventory})

    return _changed(found, filters, change)


def _stored_ratio(conn: sa.Connection, ratio: float) -> float:
    """Return the ratio that a client reads after the database has stored it.

    The column has single precision on MySQL, and the server returns six significant digits.
    """
    if conn.dialect.name != 'mysql':
        return ratio
    (single,) = struct.unpack('f', struct.pack('f', ratio))
    return float(f'{single:.6g}')


def set_trait(
    _conn: sa.Connection, found: Cloud, name: str, present: bool, filters: Filters = None
) -> Cloud:
    """Add a trait to providers, or remove it from them."""
    trait_id = found.ids.traits.get(name)
    if trait_id is None:
        raise exception.UnknownTraits([name])
    return _linked(found, filters, 'traits', trait_id, present)


def set_aggregate(
    conn: sa.Connection, found: Cloud, uuid: str, present: bool, filters: Filters = None
) -> Cloud:
    """Add providers to an aggregate, or remove them from it."""
    # The database decides whether the UUID equals that of an existing aggregate.
    stored = sa.select(_AGGREGATES.c.id).where(_AGGREGATES.c.uuid == uuid)
    aggregate_id = found.ids.aggregates.get(uuid) or conn.scalar(stored)
    if aggregate_id is None:
        aggregate_id = max(found.aggregates, default=0) + 1
        found = dataclasses.replace(found, aggregates={**found.aggregates, aggregate_id: uuid})
    return _linked(found, filters, 'aggregates', aggregate_id, present)


def _linked(found: Cloud, filters: Filters, field: str, id_: int, present: bool) -> Cloud:
    """Add a trait or an aggregate to providers, or remove it from them.

    :param field: 'traits' or 'aggregates'
    """
    added = {id_} if present else set()

    def change(provider: Provider) -> Provider:
        links: dict[str, Any] = {field: getattr(provider, field) - {id_} | added}
        return provider._replace(**links)

    return _changed(found, filters, change)


def _changed(found: Cloud, filters: Filters, change: Callable[[Provider], Provider]) -> Cloud:
    """Return the cloud after a change of the providers that match the filters."""
    matching = _matching(found, filters)
    providers = [change(one) if one.id in matching else one for one in found.providers]
    return dataclasses.replace(found, providers=providers)


def _matching(found: Cloud, filters: Filters) -> Collection[int]:
    """Return the ids of the providers that a change concerns; the API lists all of them."""
    existing = {one.id for one in found.providers}
    listed = [one for one in found.providers if one.root_id in existing]
    if filters is None:
        return {one.id for one in listed}
    named = model.Group(
        # One provider has to satisfy all conditions, as for a suffixed group.
        suffix='_',
        amounts=tuple(filters.amounts.items()),
        required=filters.required,
        forbidden=filters.forbidden,
        member_of=filters.member_of,
        forbidden_aggregates=filters.forbidden_aggregates,
        in_tree=filters.in_tree,
    )
    (group,) = request.with_ids(model.Query((named,)), found.ids).groups
    slot = model.Slot(group, group.amounts)
    matching = {
        one.id
        for one in listed
        if filters.name in (None, found.names[one.id])
        and filters.uuid in (None, one.uuid)
        and eligibility.satisfies_suffixed_group(one, slot)
    }
    if not matching:
        raise CannotProceedError('No resource provider matches the filter.')
    return matching


# Usage above the capacity ---------------------------------------------------------


def _exceeded(found: Cloud) -> Counter[tuple[int, str]]:
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
