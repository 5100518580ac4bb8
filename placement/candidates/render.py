"""Builds the body of the response from the result of a search.

`model` defines the terms slot and binding.

A `Shape` lists the parts of the response that depend on the microversion. `render` uses only the
`Shape` and does not compare microversions.

PERF: the functions concatenate JSON text. If several candidates have an equal part, for example the
same resources, its text is created only once. To build dictionaries and to serialize them took
twice as long, which was a seventh of the time of a request for 1,000 candidates (2026-11).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
from json.encoder import encode_basestring_ascii as quote

from placement import microversion
from placement.candidates import model
from placement.candidates.summaries import Summaries
from placement.capacity import capacity_of
from placement.microversion import Version

# The number of candidates or provider summaries in each part of the text. A candidate can have more
# than a megabyte.
_ITEMS_PER_PART = 16
# A text that no UUID contains, in place of the UUID of a provider.
_PLACEHOLDER = '<provider>'


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of the response that depend on the microversion."""

    # Whether `allocations` is an object with provider UUIDs as keys. Otherwise, it is a list.
    keyed: bool
    # Whether an allocation request has `mappings`.
    mappings: bool
    # Whether a provider summary has `traits`.
    traits: bool
    # Whether a provider summary has all resource classes of the provider. Otherwise, it has only
    # the requested classes.
    all_classes: bool
    # Whether a provider summary has `root_provider_uuid` and `parent_provider_uuid`.
    trees: bool

    @classmethod
    def of(cls, version: Version) -> 'Shape':
        """Return the shape of the response in a microversion."""
        return cls(
            keyed=version >= microversion.ALLOCATIONS_BY_PROVIDER,
            mappings=version >= microversion.MAPPINGS,
            traits=version >= microversion.CANDIDATES_REQUIRED,
            all_classes=version >= microversion.SUMMARIES_ALL_CLASSES,
            trees=version >= microversion.NESTED_CANDIDATES,
        )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The candidates to return, and the data to render them."""

    slots: tuple[model.Slot, ...]
    candidates: Sequence[model.Candidate]
    # Provider id -> provider, including all providers of the candidates.
    providers: Mapping[int, model.Provider]
    summaries: Summaries


def render(result: SearchResult, shape: Shape) -> Iterator[str]:
    """Yield the parts of the body of the response, as JSON text."""
    uuids = {id_: provider.uuid for id_, provider in result.providers.items()}
    bindings = (binding for _, binding in result.candidates)
    names = result.summaries.class_names
    yield '{"allocation_requests":['
    yield from _separated(allocation_requests(bindings, result.slots, uuids, names, shape))
    yield '],"provider_summaries":{'
    yield from _separated(_provider_summaries(result, shape))
    yield '}}'


def _separated(items: Iterable[str]) -> Iterator[str]:
    """Yield the items in parts of the text, with commas between the items."""
    remaining, comma = iter(items), ''
    while part := ','.join(itertools.islice(remaining, _ITEMS_PER_PART)):
        yield comma + part
        comma = ','


# Allocation requests ----------------------------------------------------------------


def allocation_requests(
    bindings: Iterable[model.Binding],
    slots: Sequence[model.Slot],
    uuids: Mapping[int, str],
    class_names: Mapping[int, str],
    shape: Shape,
) -> Iterator[str]:
    """Yield the allocation request of each binding, as JSON text.

    :param uuids: provider id -> UUID, including all providers of the bindings
    :param class_names: class id -> name, including all classes of the slots
    """
    quoted = {id_: quote(uuid) for id_, uuid in uuids.items()}
    resources = _Resources(slots, class_names)
    mappings = _Mappings(slots) if shape.mappings else None
    allocations = _keyed_allocations if shape.keyed else _listed_allocations

    def request(binding: model.Binding, uuids: Mapping[int, str]) -> str:
        text = allocations(_served(binding), uuids, resources)
        if mappings:
            text = f'{text},"mappings":{{{mappings.of(binding, uuids)}}}'
        return f'{{{text}}}'

    # PERF: most candidates use a single provider. The requests of these candidates differ only in
    # its UUID, and joining their common parts takes a fifth of the time of `request` (2026-11).
    parts: list[str] = []
    for binding in bindings:
        if binding.count(binding[0]) == len(binding):
            parts = parts or request((0,) * len(slots), {0: _PLACEHOLDER}).split(_PLACEHOLDER)
            yield quoted[binding[0]].join(parts)
        else:
            yield request(binding, quoted)


def _served(binding: model.Binding) -> dict[int, int]:
    """Return provider id -> the slots that the provider serves, as a bit mask of slot numbers."""
    served: dict[int, int] = {}
    for number, id_ in enumerate(binding):
        served[id_] = served.get(id_, 0) | 1 << number
    return served


class _Resources(dict[int, str]):
    """Bit mask of slots -> `"resources":{...}` for a provider that serves these slots.

    If these slots request no resources, the text is empty.
    """

    def __init__(self, slots: Sequence[model.Slot], names: Mapping[int, str]) -> None:
        self._slots = slots
        self._names = names

    def __missing__(self, served: int) -> str:
        sums: dict[str, int] = {}
        for number, slot in enumerate(self._slots):
            if served >> number & 1:
                for class_id, amount in slot.amounts:
                    name = self._names[class_id]
                    sums[name] = sums.get(name, 0) + amount
        amounts = ','.join(f'{quote(name)}:{amount}' for name, amount in sums.items())
        self[served] = f'"resources":{{{amounts}}}' if amounts else ''
        return self[served]


def _keyed_allocations(
    served: Mapping[int, int], uuids: Mapping[int, str], resources: Mapping[int, str]
) -> str:
    # If a provider serves only groups without resources, it is not in `allocations`.
    items = [
        f'{uuids[id_]}:{{{allocation}}}'
        for id_, bits in served.items()
        if (allocation := resources[bits])
    ]
    return f'"allocations":{{{",".join(items)}}}'


def _listed_allocations(
    served: Mapping[int, int], uuids: Mapping[int, str], resources: Mapping[int, str]
) -> str:
    items = []
    for id_, bits in served.items():
        provider = f'"resource_provider":{{"uuid":{uuids[id_]}}}'
        items.append(f'{{{provider},{resources[bits]}}}' if resources[bits] else f'{{{provider}}}')
    return f'"allocations":[{",".join(items)}]'


class _Mappings:
    """Renders the `mappings` of allocation requests, without the braces."""

    def __init__(self, slots: Sequence[model.Slot]) -> None:
        self._suffixed = [
            (n, quote(slot.group.suffix)) for n, slot in enumerate(slots) if slot.suffixed
        ]
        self._unsuffixed = [number for number, slot in enumerate(slots) if not slot.suffixed]

    def of(self, binding: model.Binding, uuids: Mapping[int, str]) -> str:
        """Return the mappings of a binding.

        :param uuids: provider id -> quoted UUID
        """
        items = [f'{suffix}:[{uuids[binding[number]]}]' for number, suffix in self._suffixed]
        if self._unsuffixed:
            ids = sorted({binding[number] for number in self._unsuffixed})
            items.append(f'"":[{",".join([uuids[id_] for id_ in ids])}]')
        return ','.join(items)


# Provider summaries -----------------------------------------------------------------


def _provider_summaries(result: SearchResult, shape: Shape) -> Iterator[str]:
    """Yield the name and the value of each provider summary, as JSON text."""
    providers = result.summaries.providers
    capacities = _capacities(result, shape)
    uuids = {provider.id: quote(provider.uuid) for provider in providers}
    traits = _Traits(result.summaries.trait_names)
    for provider in providers:
        resources = _resources(provider.inventories.values(), capacities)
        text = f'{uuids[provider.id]}:{{"resources":{{{resources}}}'
        if shape.traits:
            text += traits[provider.traits]
        if shape.trees:
            text += _parent_and_root(provider, uuids)
        yield text + '}'


def _capacities(result: SearchResult, shape: Shape) -> dict[int, str]:
    """Return the text before the capacity of each resource class that the summaries contain."""
    names = result.summaries.class_names
    classes: Collection[int] = names
    if not shape.all_classes:
        classes = {class_id for slot in result.slots for class_id, _ in slot.amounts}
    return {id_: f'{quote(names[id_])}:{{"capacity":' for id_ in classes if id_ in names}


def _resources(
    inventories: Iterable[model.ProviderInventory], capacities: Mapping[int, str]
) -> str:
    """Return the capacity and usage of each inventory whose class is in `capacities`."""
    # PERF: unpacking the values takes half the time of reading them by attribute (2026-11).
    return ','.join(
        [
            f'{capacities[class_id]}{int(capacity_of(total, reserved, ratio))},"used":{used}}}'
            for class_id, total, reserved, _, _, _, ratio, used in inventories
            if class_id in capacities
        ]
    )


def _parent_and_root(provider: model.Provider, uuids: Mapping[int, str]) -> str:
    # In a damaged database, the parent may not exist or may be in another tree. The value is then
    # null.
    parent = 'null' if provider.parent_id is None else uuids.get(provider.parent_id, 'null')
    root = uuids[provider.root_id]
    return f',"parent_provider_uuid":{parent},"root_provider_uuid":{root}'


class _Traits(dict[frozenset[int], str]):
    """Set of trait ids -> `,"traits":[...]`, with the trait names in the order of the ids.

    So a trait that was created first, which is usually a standard trait, is first in the list.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def __missing__(self, ids: frozenset[int]) -> str:
        # In a damaged database, a provider may have a trait id that does not exist.
        names = [quote(self._names[id_]) for id_ in sorted(ids) if id_ in self._names]
        self[ids] = f',"traits":[{",".join(names)}]'
        return self[ids]
