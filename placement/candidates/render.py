"""From a search result to the body of the response.

A `Shape` describes, as data, what the response of a microversion contains; `render` compares no
versions. PERF: equal parts of many candidates are one object that is created once. The JSON encoder
does not mind, and creating them separately would take most of the time of a long response.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """What the response of a microversion contains."""

    # Whether allocations are an object keyed by provider uuid, not a list.
    keyed: bool
    mappings: bool
    # The members of a provider summary: traits; all classes, not only the requested ones; root and
    # parent.
    traits: bool
    all_classes: bool
    trees: bool

    @classmethod
    def of(cls, version: Version) -> 'Shape':
        """Return the shape for a microversion."""
        return cls(
            keyed=version >= microversion.ALLOCATIONS_BY_PROVIDER,
            mappings=version >= microversion.MAPPINGS,
            traits=version >= microversion.CANDIDATES_REQUIRED,
            all_classes=version >= microversion.SUMMARIES_ALL_CLASSES,
            trees=version >= microversion.NESTED_CANDIDATES,
        )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The candidates of a response with everything that is needed to render them."""

    slots: tuple[model.Slot, ...]
    candidates: Sequence[model.Candidate]
    # At least the providers of all candidates.
    providers: Mapping[int, model.Provider]
    summaries: Summaries


def render(result: SearchResult, shape: Shape) -> Json:
    """Return the body of the response."""
    return {
        'allocation_requests': _allocation_requests(result, shape),
        'provider_summaries': _provider_summaries(result, shape),
    }


def _allocation_requests(result: SearchResult, shape: Shape) -> list[Json]:
    bits = [1 << number for number in range(len(result.slots))]
    uuids = {id_: provider.uuid for id_, provider in result.providers.items()}
    resources = _Resources(result)
    allocations = _keyed_allocations if shape.keyed else _listed_allocations
    mappings = _mappings_function(result.slots, uuids) if shape.mappings else None
    requests = []
    for _, binding in result.candidates:
        # Provider -> the slots that it serves, as bits.
        served: dict[int, int] = {}
        for id_, bit in zip(binding, bits, strict=True):
            served[id_] = served.get(id_, 0) | bit
        request: Json = {'allocations': allocations(served, uuids, resources)}
        if mappings:
            request['mappings'] = mappings(binding)
        requests.append(request)
    return requests


class _Resources(dict[int, Json]):
    """Slots, as bits -> the resources of an allocation from a provider that serves them all."""

    def __init__(self, result: SearchResult) -> None:
        self._slots = result.slots
        self._names = result.summaries.class_names

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
    # A provider that serves only groups without resources has no allocation.
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
    """Return a function from a binding to the mappings of an allocation request."""
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
            # In a damaged database a parent may not exist, or may be in another tree.
            summary['parent_provider_uuid'] = uuids.get(provider.parent_id)
            summary['root_provider_uuid'] = uuids[provider.root_id]
        summaries[provider.uuid] = summary
    return summaries


def _resources(inventories: Iterable[model.ProviderInventory], names: Mapping[int, str]) -> Json:
    """Return capacity and usage by class name, of the classes in `names`."""
    # PERF: reading the values by position takes half the time of attributes (2026-11).
    return {
        names[class_id]: {'capacity': int(capacity_of(total, reserved, ratio)), 'used': used}
        for class_id, total, reserved, _, _, _, ratio, used in inventories
        if class_id in names
    }


class _TraitLists(dict[frozenset[int], list[str]]):
    """Sets of trait ids -> the trait names in the order of the alphabet."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def __missing__(self, ids: frozenset[int]) -> list[str]:
        # In a damaged database a provider may have a trait that does not exist.
        self[ids] = sorted(self._names[id_] for id_ in ids if id_ in self._names)
        return self[ids]
