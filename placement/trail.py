"""The trail in the log: what requests changed, and why claims were refused.

The functions are pure, apart from `log`. They return or yield the texts of the lines. Text that a
client chose, for example the name of a provider, is percent-encoded.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
import logging
import re
from typing import ParamSpec, Protocol
from urllib.parse import quote

from placement import exception
from placement.capacity import Inventory, InventoryUsage

# Operators select the lines by this name, so it does not depend on the module.
LOG = logging.getLogger('placement.changes')

P = ParamSpec('P')
# For each provider UUID, the amounts keyed by class name.
Amounts = Mapping[str, Mapping[str, int]]

# The characters to percent-encode: all except visible ASCII, and the quotation marks. A double
# quote would end a field of a log line. A single quote would end an argument in a shell.
_UNSAFE = re.compile(r'[^!#-&(-~]+')
_FIELDS = tuple(Inventory.__dataclass_fields__)
_UNITS = ('min_unit', 'max_unit', 'step_size')
# The maximum number of unknown names in a line.
_MOST_NAMES = 20


def quoted(text: str, encoding: str = 'utf-8') -> str:
    """Percent-encode the unsafe characters of a text of a client, for a log line.

    Text that is already percent-encoded is not encoded again. Therefore, an encoded query string
    has the same parameters as the original one.
    """
    return _UNSAFE.sub(lambda match: quote(match[0], encoding=encoding, errors='replace'), text)


# Changes --------------------------------------------------------------------------


def switch(on: bool) -> None:
    """Switch the lines of changes on or off in this process (`[api] log_changes`)."""
    LOG.disabled = not on


def log(describe: Callable[P, Iterable[str]], *args: P.args, **kwargs: P.kwargs) -> None:
    """Log what a request changed. The caller has committed the transaction.

    :param describe: yields one line for each changed object; called only if the lines are logged
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    try:
        for line in describe(*args, **kwargs):
            LOG.info(line)
    except Exception:
        # The change is stored, so the request must not fail.
        LOG.exception('Failed to log a change')


class Provider(Protocol):
    """A resource provider with its name and its place in the tree."""

    @property
    def uuid(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def parent_uuid(self) -> str | None: ...  # noqa: D102


def provider(before: Provider | None, after: Provider | None) -> Iterator[str]:
    """Describe a change of a provider, which is None before its creation or after its deletion."""
    events = []
    if before is None:
        events.append('created')
    elif after is None:
        events.append('deleted')
    else:
        if after.name != before.name:
            events.append(f'renamed from {quoted(before.name)}')
        if after.parent_uuid != before.parent_uuid:
            old, new = before.parent_uuid or 'none', after.parent_uuid or 'none'
            events.append(f'moved from parent {old} to {new}')
    named = after or before
    if named is not None and events:
        yield f'provider {_label(named.uuid, named.name)} {", ".join(events)}'


def inventories(
    uuid: str,
    name: str | None,
    before: Mapping[str, InventoryUsage],
    after: Mapping[str, Inventory],
) -> Iterator[str]:
    """Describe the changes of the inventories of a provider, which are keyed by class name.

    :param name: the name of the provider, None if the request did not read it
    """
    parts = []
    for class_name in sorted(before.keys() & after.keys()):
        old, new = before[class_name].inventory, after[class_name]
        changes = [
            f'{field} {getattr(old, field)} -> {getattr(new, field)}'
            for field in _FIELDS
            if getattr(old, field) != getattr(new, field)
        ]
        if changes:
            parts.append(f'{class_name} {", ".join(changes)}')
    parts += [
        f'{class_name} removed (total {before[class_name].inventory.total})'
        for class_name in sorted(before.keys() - after.keys())
    ]
    parts += [
        f'{class_name} added (total {after[class_name].total})'
        for class_name in sorted(after.keys() - before.keys())
    ]
    if parts:
        yield f'inventory of {_label(uuid, name)}: {"; ".join(parts)}'


def links(
    kind: str, uuid: str, name: str | None, added: Collection[str], removed: Collection[str]
) -> Iterator[str]:
    """Describe the changes of the traits or aggregates of a provider.

    :param kind: `traits` or `aggregates`
    :param name: the name of the provider, None if the request did not read it
    """
    if added or removed:
        signed = (*(f'+{one}' for one in sorted(added)), *(f'-{one}' for one in sorted(removed)))
        yield f'{kind} of {_label(uuid, name)}: {" ".join(signed)}'


def allocations(
    consumer_uuid: str,
    consumer_type: str | None,
    project_id: str,
    user_id: str,
    before: Amounts,
    after: Amounts,
) -> Iterator[str]:
    """Describe new allocations of a consumer.

    :param consumer_type: None if the request does not contain it
    """
    kind = f'{consumer_type}, ' if consumer_type else ''
    label = f'{consumer_uuid} ({kind}project {quoted(project_id)}, user {quoted(user_id)})'
    if not before or before == after:
        yield f'allocations of {label}: {_amounts(after)}'
    else:
        old, new = _amounts(_without(before, after)), _amounts(_without(after, before))
        yield f'allocations of {label}: {old or "none"} -> {new or "none"}'


def allocations_removed(consumer_uuid: str, before: Amounts) -> Iterator[str]:
    """Describe the removal of all allocations of a consumer.

    :param before: empty if the request did not read the allocations
    """
    amounts = f': {_amounts(before)}' if before else ''
    yield f'allocations of {quoted(consumer_uuid)} removed{amounts}'


def _label(uuid: str, name: str | None) -> str:
    return quoted(uuid) if name is None else f'{quoted(name)} ({uuid})'


def _amounts(amounts: Amounts) -> str:
    return '; '.join(
        f'{uuid} {", ".join([f"{name} {amount}" for name, amount in of_provider.items()])}'
        for uuid, of_provider in amounts.items()
    )


def _without(amounts: Amounts, others: Amounts) -> Amounts:
    """Return the amounts that are not the same in `others`."""
    different = {
        uuid: {
            name: amount
            for name, amount in of_provider.items()
            if others.get(uuid, {}).get(name) != amount
        }
        for uuid, of_provider in amounts.items()
    }
    return {uuid: of_provider for uuid, of_provider in different.items() if of_provider}


# Refused claims -------------------------------------------------------------------


def refused_consumers(exc: exception.PlacementException, uuids: Iterable[str]) -> str:
    """Return the UUID of the consumer that an error concerns, or else of all consumers.

    :param uuids: the consumers of the request; a reshape can have none
    """
    if isinstance(exc, exception.InvalidAllocation):
        return exc.consumer_uuid
    if isinstance(exc, exception.ConsumerGenerationConflict):
        return exc.uuid
    return ', '.join(uuids) or '-'


def refusal(exc: exception.PlacementException) -> str:
    """Return why claims are refused, for a line of the log."""
    match exc:
        case exception.InvalidAllocation():
            return f'{exc.resource_class} on {exc.provider_uuid}: {_violation(exc)}'
        case exception.ConsumerGenerationConflict():
            given, current = ('null' if g is None else g for g in (exc.given, exc.current))
            return f'consumer generation {given} given, {current} stored'
        case exception.ResourceProviderGenerationConflict():
            return f'provider {exc.uuid}: generation {exc.given} given, {exc.current} stored'
        case exception.ConcurrentChange(provider_uuids=[]):
            return 'concurrent change'
        case exception.ConcurrentChange():
            return f'provider {", ".join(exc.provider_uuids)}: concurrent change'
        case exception.UnknownResourceProviders():
            return f'provider {_listed(exc.uuids)}: unknown'
        case exception.InventoryInUse():
            return f'{", ".join(exc.resource_classes)} on {exc.provider_uuid}: inventory in use'
        case exception.UnknownResourceClasses():
            return f'resource class {_listed(exc.names)}: unknown'
    return ' '.join(map(quoted, str(exc).split()))


def _listed(names: Sequence[str]) -> str:
    """Return the first names; a client can request tens of thousands that do not exist."""
    more = f' and {len(names) - _MOST_NAMES} more' if len(names) > _MOST_NAMES else ''
    return ', '.join(map(quoted, names[:_MOST_NAMES])) + more


def _violation(exc: exception.InvalidAllocation) -> str:
    if exc.rule == 'no_inventory':
        return 'no inventory'
    if exc.rule == 'capacity':
        return f'{exc.requested} requested, {exc.used} of {exc.limits["capacity"]} used'
    units = ', '.join(f'{name} {exc.limits[name]}' for name in _UNITS)
    return f'{units}: {exc.requested} requested'
