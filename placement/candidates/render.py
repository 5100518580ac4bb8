"""Builds the body of the response from the result of a search.

`model` defines the terms slot and binding.

A `Shape` lists the parts of the response that depend on the microversion. Only `Shape.of` compares
microversions.

PERF: the provider summaries are concatenated from JSON texts. If several have an equal part, for
example the same traits, its text is created only once. If dictionaries were built and serialized, a
search for 1,000 candidates would take up to 1.2 times as long (2026-11).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import json
from json.encoder import encode_basestring_ascii as quote
import re

from placement import microversion
from placement.candidates import model
from placement.candidates.summaries import Summaries
from placement.capacity import capacity_of
from placement.microversion import Version

# The number of candidates or provider summaries in each part of the text. A candidate can have more
# than a megabyte.
_ITEMS_PER_PART = 16
# The maximum number of patterns of a response. A pattern can have 100 KB.
_PATTERNS = 100
# The maximum number of slots of a pattern. The time to find the pattern of a binding grows with the
# square of this number.
_PATTERN_SLOTS = 32
# The number of a slot between two NUL characters, in place of the UUID of its provider, as JSON.
_PLACEHOLDER = re.compile(r'"\\u0000(\d+)\\u0000"')
# Provider id -> class name -> the amount that a candidate allocates.
_Amounts = Mapping[int, Mapping[str, int]]


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

    def text(binding: model.Binding, uuids: Mapping[int, str]) -> str:
        amounts = _amounts(binding, slots, class_names)
        request: dict[str, object] = {'allocations': allocations(amounts, uuids)}
        if shape.mappings:
            request['mappings'] = _mappings(binding, slots, uuids)
        return json.dumps(request, separators=(',', ':'))

    allocations = _keyed_allocations if shape.keyed else _listed_allocations
    if len(slots) > _PATTERN_SLOTS:
        yield from (text(binding, uuids) for binding in bindings)
        return
    quoted = {id_: quote(uuid) for id_, uuid in uuids.items()}
    # PERF: candidates whose slots are bound alike differ only in UUIDs. Filling in the UUIDs takes
    # a tenth of the time of `text`. Without patterns, a search for 1,000 candidates would take 1.2
    # to 2.5 times as long (2026-11).
    patterns: dict[model.Binding, _Pattern] = {}
    for binding in bindings:
        # For each slot, the number of the first slot that is bound to the same provider.
        firsts = tuple(map(binding.index, binding))
        pattern = patterns.get(firsts)
        if pattern is None and len(patterns) < _PATTERNS:
            placeholders = {number: f'\0{number}\0' for number in firsts}
            pattern = patterns[firsts] = _Pattern(text(firsts, placeholders))
        yield pattern.fill(binding, quoted) if pattern else text(binding, uuids)


class _Pattern:
    """The text of the allocation requests of bindings that bind the same slots to one provider."""

    def __init__(self, text: str) -> None:
        """Prepare the text.

        :param text: the allocation request, with `_PLACEHOLDER` in place of each quoted UUID
        """
        self._parts = _PLACEHOLDER.split(text)
        self._slots = [int(number) for number in self._parts[1::2]]
        self._around_uuid = None if any(self._slots) else self._parts[::2]

    def fill(self, binding: model.Binding, quoted: Mapping[int, str]) -> str:
        """Return the allocation request of a binding.

        :param quoted: provider id -> quoted UUID
        """
        if self._around_uuid:  # The text contains the UUID of only one provider.
            return quoted[binding[0]].join(self._around_uuid)
        self._parts[1::2] = [quoted[binding[number]] for number in self._slots]
        return ''.join(self._parts)


def _amounts(
    binding: model.Binding, slots: Sequence[model.Slot], class_names: Mapping[int, str]
) -> _Amounts:
    amounts: dict[int, dict[str, int]] = {id_: {} for id_ in binding}
    for id_, slot in zip(binding, slots, strict=True):
        for class_id, amount in slot.amounts:
            name = class_names[class_id]
            amounts[id_][name] = amounts[id_].get(name, 0) + amount
    return amounts


def _keyed_allocations(amounts: _Amounts, uuids: Mapping[int, str]) -> object:
    # If a provider serves only groups without resources, it is not in `allocations`.
    return {uuids[id_]: {'resources': some} for id_, some in amounts.items() if some}


def _listed_allocations(amounts: _Amounts, uuids: Mapping[int, str]) -> object:
    return [
        {'resource_provider': {'uuid': uuids[id_]}} | ({'resources': some} if some else {})
        for id_, some in amounts.items()
    ]


def _mappings(
    binding: model.Binding, slots: Sequence[model.Slot], uuids: Mapping[int, str]
) -> dict[str, list[str]]:
    """Return suffix -> the UUIDs of the providers that serve the group."""
    found: dict[str, dict[str, None]] = {}
    for id_, slot in zip(binding, slots, strict=True):
        found.setdefault(slot.group.suffix, {})[uuids[id_]] = None
    return {suffix: list(distinct) for suffix, distinct in found.items()}


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
