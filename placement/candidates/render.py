"""From candidates to the body of the response.

A `Shape` is what a microversion makes of the answer, as data: `render` asks it and knows no
version. Equal parts of many candidates are one object, made once: the encoder does not mind,
and most of the time of a long answer would be spent in making them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement import microversion
from placement.candidates import model
from placement.microversion import Version

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a microversion shows."""

    # Allocations as an object keyed by provider, not as a list.
    keyed: bool
    mappings: bool
    # In summaries: traits, all classes (not only those asked for), parent and root; and whether
    # there is one for each provider of the trees concerned, not only for those that serve.
    traits: bool
    all_classes: bool
    trees: bool

    @classmethod
    def of(cls, version: Version) -> 'Shape':
        return cls(
            keyed=version >= microversion.ALLOCATIONS_BY_PROVIDER,
            mappings=version >= microversion.MAPPINGS,
            traits=version >= microversion.CANDIDATES_REQUIRED,
            all_classes=version >= microversion.SUMMARIES_ALL_CLASSES,
            trees=version >= microversion.NESTED_CANDIDATES,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, with everything that is needed to show it."""

    slots: tuple[model.Slot, ...]
    candidates: Sequence[model.Candidate]
    # Those that serve in a candidate, at least.
    providers: Mapping[int, model.Provider]
    # Those that get a summary.
    summarised: Sequence[model.Provider]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]


def render(answer: Answer, shape: Shape) -> Json:
    """The body of the response."""
    return {
        'allocation_requests': _requests(answer, shape),
        'provider_summaries': _summaries(answer, shape),
    }


def _requests(answer: Answer, shape: Shape) -> list[Json]:
    bits = [1 << number for number in range(len(answer.slots))]
    uuids = {id_: provider.uuid for id_, provider in answer.providers.items()}
    resources = _Resources(answer)
    allocations = _keyed_allocations if shape.keyed else _listed_allocations
    mappings = _mapper(answer.slots, uuids) if shape.mappings else None
    requests = []
    for _, chosen in answer.candidates:
        # Provider -> the slots that it serves, as bits.
        served: dict[int, int] = {}
        for id_, bit in zip(chosen, bits, strict=True):
            served[id_] = served.get(id_, 0) | bit
        request: Json = {'allocations': allocations(served, uuids, resources)}
        if mappings:
            request['mappings'] = mappings(chosen)
        requests.append(request)
    return requests


class _Resources(dict[int, Json]):
    """Slots, as bits -> what they take from a provider that serves them all."""

    def __init__(self, answer: Answer):
        self._slots = answer.slots
        self._names = answer.class_names

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
    # Who serves groups without resources alone has nothing to allocate.
    return {uuids[id_]: found for id_, bits in served.items() if (found := resources[bits])}


def _listed_allocations(
    served: Mapping[int, int], uuids: Mapping[int, str], resources: Mapping[int, Json]
) -> list[Json]:
    return [
        {'resource_provider': {'uuid': uuids[id_]}, **resources[bits]}
        for id_, bits in served.items()
    ]


def _mapper(
    slots: Sequence[model.Slot], uuids: Mapping[int, str]
) -> Callable[[model.Chosen], dict[str, list[str]]]:
    """A function that says who serves which group."""
    suffixed = [(n, slot.group.suffix) for n, slot in enumerate(slots) if slot.granular]
    loose = [number for number, slot in enumerate(slots) if not slot.granular]
    alone = {id_: [uuid] for id_, uuid in uuids.items()}

    def mappings(chosen: model.Chosen) -> dict[str, list[str]]:
        found = {suffix: alone[chosen[number]] for number, suffix in suffixed}
        if loose:
            together = {chosen[number] for number in loose}
            found[''] = (
                alone[chosen[loose[0]]]
                if len(together) == 1
                else [uuids[id_] for id_ in sorted(together)]
            )
        return found

    return mappings


def _summaries(answer: Answer, shape: Shape) -> Json:
    names = answer.class_names
    if not shape.all_classes:
        asked = {class_id for slot in answer.slots for class_id, _ in slot.amounts}
        names = {id_: name for id_, name in names.items() if id_ in asked}
    uuids: dict[int | None, str] = {p.id: p.uuid for p in answer.summarised}
    trait_lists = _TraitLists(answer.trait_names)
    summaries: Json = {}
    for provider in answer.summarised:
        summary: Json = {'resources': _stock(provider.stock.values(), names)}
        if shape.traits:
            summary['traits'] = trait_lists[provider.traits]
        if shape.trees:
            # In a damaged database a parent may not exist, or be in another tree.
            summary['parent_provider_uuid'] = uuids.get(provider.parent_id)
            summary['root_provider_uuid'] = uuids[provider.root_id]
        summaries[provider.uuid] = summary
    return summaries


def _stock(stock: Iterable[model.Stock], names: Mapping[int, str]) -> Json:
    return {
        names[class_id]: {'capacity': int((total - reserved) * ratio), 'used': used}
        for class_id, total, reserved, _, _, _, ratio, used in stock
        if class_id in names
    }


class _TraitLists(dict[frozenset[int], list[str]]):
    """Sets of traits -> their names."""

    def __init__(self, names: Mapping[int, str]):
        self._names = names

    def __missing__(self, ids: frozenset[int]) -> list[str]:
        # In a damaged database a provider may have a trait that does not exist.
        self[ids] = sorted(self._names[id_] for id_ in ids if id_ in self._names)
        return self[ids]
