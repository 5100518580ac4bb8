"""Builds the body of the response from the result of a search.

`model` defines the terms slot and binding.

A `Shape` lists the parts of the response that depend on the microversion. `render` uses only the
`Shape` and does not compare microversions.

PERF: if several candidates have an equal part, for example the same resources, the part is created
only once and used in all of them. Creating equal parts separately would take most of the time of a
long response.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement import microversion
from placement.candidates import model
from placement.candidates.summaries import Summaries
from placement.capacity import capacity_of
from placement.microversion import Version

Json = dict[str, Any]


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


def render(result: SearchResult, shape: Shape) -> Json:
    """Return the body of the response."""
    uuids = {id_: provider.uuid for id_, provider in result.providers.items()}
    bindings = (binding for _, binding in result.candidates)
    names = result.summaries.class_names
    return {
        'allocation_requests': list(
            allocation_requests(bindings, result.slots, uuids, names, shape)
        ),
        'provider_summaries': _provider_summaries(result, shape),
    }


def allocation_requests(
    bindings: Iterable[model.Binding],
    slots: Sequence[model.Slot],
    uuids: Mapping[int, str],
    class_names: Mapping[int, str],
    shape: Shape,
) -> Iterator[Json]:
    """Yield the allocation request of each binding.

    :param uuids: provider id -> UUID, including all providers of the bindings
    :param class_names: class id -> name, including all classes of the slots
    """
    bits = [1 << number for number in range(len(slots))]
    resources = _Resources(slots, class_names)
    allocations = _keyed_allocations if shape.keyed else _listed_allocations
    mappings = _mappings_function(slots, uuids) if shape.mappings else None
    for binding in bindings:
        # Provider id -> the slots that the provider serves, as a bit mask of slot numbers.
        served: dict[int, int] = {}
        for id_, bit in zip(binding, bits, strict=True):
            served[id_] = served.get(id_, 0) | bit
        request: Json = {'allocations': allocations(served, uuids, resources)}
        if mappings:
            request['mappings'] = mappings(binding)
        yield request


class _Resources(dict[int, Json]):
    """Bit mask of slots -> the allocation from a provider that serves these slots.

    If these slots request no resources, the allocation is empty.
    """

    def __init__(self, slots: Sequence[model.Slot], names: Mapping[int, str]) -> None:
        self._slots = slots
        self._names = names

    def __missing__(self, served: int) -> Json:
        sums: dict[str, int] = {}
        for number, slot in enumerate(self._slots):
            if served >> number & 1:
                for class_id, amount in slot.amounts:
                    name = self._names[class_id]
                    sums[name] = sums.get(name, 0) + amount
        self[served] = {'resources': sums} if sums else {}
        return self[served]


def _keyed_allocations(
    served: Mapping[int, int], uuids: Mapping[int, str], resources: Mapping[int, Json]
) -> Json:
    # If a provider serves only groups without resources, it is not in `allocations`.
    return {
        uuids[id_]: allocation for id_, bits in served.items() if (allocation := resources[bits])
    }


def _listed_allocations(
    served: Mapping[int, int], uuids: Mapping[int, str], resources: Mapping[int, Json]
) -> list[Json]:
    return [
        {'resource_provider': {'uuid': uuids[id_]}, **resources[bits]}
        for id_, bits in served.items()
    ]


def _mappings_function(
    slots: Sequence[model.Slot], uuids: Mapping[int, str]
) -> Callable[[model.Binding], dict[str, list[str]]]:
    """Return a function that returns the `mappings` of an allocation request for a binding."""
    suffixed = [(n, slot.group.suffix) for n, slot in enumerate(slots) if slot.suffixed]
    unsuffixed = [number for number, slot in enumerate(slots) if not slot.suffixed]
    single = {id_: [uuid] for id_, uuid in uuids.items()}

    def mappings(binding: model.Binding) -> dict[str, list[str]]:
        result = {suffix: single[binding[number]] for number, suffix in suffixed}
        if unsuffixed:
            ids = {binding[number] for number in unsuffixed}
            result[''] = (
                single[binding[unsuffixed[0]]]
                if len(ids) == 1
                else [uuids[id_] for id_ in sorted(ids)]
            )
        return result

    return mappings


def _provider_summaries(result: SearchResult, shape: Shape) -> Json:
    names = result.summaries.class_names
    if not shape.all_classes:
        requested = {class_id for slot in result.slots for class_id, _ in slot.amounts}
        names = {id_: name for id_, name in names.items() if id_ in requested}
    uuids: dict[int | None, str] = {p.id: p.uuid for p in result.summaries.providers}
    trait_lists = _TraitLists(result.summaries.trait_names)
    summaries: Json = {}
    for provider in result.summaries.providers:
        summary: Json = {'resources': _resources(provider.inventories.values(), names)}
        if shape.traits:
            summary['traits'] = trait_lists[provider.traits]
        if shape.trees:
            # In a damaged database, the parent may not exist or may be in another tree. The value
            # is then null.
            summary['parent_provider_uuid'] = uuids.get(provider.parent_id)
            summary['root_provider_uuid'] = uuids[provider.root_id]
        summaries[provider.uuid] = summary
    return summaries


def _resources(inventories: Iterable[model.ProviderInventory], names: Mapping[int, str]) -> Json:
    """Return the capacity and usage of each inventory whose class is in `names`."""
    # PERF: unpacking the values takes half the time of reading them by attribute (2026-11).
    return {
        names[class_id]: {'capacity': int(capacity_of(total, reserved, ratio)), 'used': used}
        for class_id, total, reserved, _, _, _, ratio, used in inventories
        if class_id in names
    }


class _TraitLists(dict[frozenset[int], list[str]]):
    """Set of trait ids -> the list of trait names, in the order of the ids.

    So a trait that was created first, which is usually a standard trait, is first in the list.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def __missing__(self, ids: frozenset[int]) -> list[str]:
        # In a damaged database, a provider may have a trait id that does not exist.
        self[ids] = [self._names[id_] for id_ in sorted(ids) if id_ in self._names]
        return self[ids]
