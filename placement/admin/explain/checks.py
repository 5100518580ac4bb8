"""Checks each condition of a query alone for the providers of an anchor.

A set of conditions is represented by a bit mask: bit n stands for the condition with the number n.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
import functools
import itertools
import operator

from placement.admin.explain import conditions
from placement.admin.explain.conditions import Condition, Kind
from placement.candidates import eligibility, model, request

# The conditions that every single provider satisfies.
_OF_SEVERAL_PROVIDERS = (Kind.SAME_SUBTREE, Kind.GROUP_POLICY)
# The conditions of the unsuffixed group that each of its providers must satisfy.
_OF_EACH_PROVIDER = (
    Kind.FORBIDDEN,
    Kind.MEMBER_OF,
    Kind.FORBIDDEN_AGGREGATES,
    Kind.IN_TREE,
)

Mask = int


@dataclass(frozen=True, slots=True)
class Failures:
    """The conditions that fail in an anchor.

    :ivar alone: the conditions that no provider in reach satisfies
    :ivar slots: for each slot, the sets of conditions of which one must be relaxed so that some
        provider can serve the slot. An empty set means that a provider can serve it as it is, and
        no set means that no provider has the inventories
    :ivar effective: the conditions whose relaxation may change the candidates of the anchor
    """

    alone: Mask
    slots: tuple[frozenset[Mask], ...]
    effective: Mask

    def allow(self, relaxed: Mask) -> bool:
        """Whether the anchor may have candidates if these conditions are relaxed.

        It has none if a slot has no eligible provider. If a relaxed condition has no effect, the
        candidates are those of a smaller set of relaxed conditions, which is expected to have none.
        """
        if self.alone & ~relaxed or relaxed & ~self.effective:
            return False
        return all(any(not mask & ~relaxed for mask in masks) for masks in self.slots)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A slot: its classes, and the numbers of its conditions."""

    classes: tuple[int, ...]
    numbers: tuple[int, ...]


class Checks:
    """The conditions of a query, prepared for checks."""

    def __init__(self, all_conditions: Sequence[Condition], ids: request.Ids) -> None:
        self._checks = [_check_of(condition, ids) for condition in all_conditions]
        self._slots = _slots(all_conditions, ids)
        self._always_effective = _always_effective(all_conditions)

    def satisfying(self, number: int, anchor: model.Anchor) -> frozenset[int]:
        """Return the ids of the providers in reach that satisfy a condition alone."""
        return frozenset(provider.id for provider in self._checks[number](anchor))

    def failures(self, anchor: model.Anchor) -> Failures:
        """Return the conditions that fail in an anchor."""
        satisfying = [self.satisfying(number, anchor) for number in range(len(self._checks))]
        alone = sum(1 << number for number, ids in enumerate(satisfying) if not ids)
        of_slots = [_masks(slot, anchor, satisfying) for slot in self._slots]
        return Failures(
            alone=alone,
            slots=tuple(map(_minimal, of_slots)),
            effective=functools.reduce(
                operator.or_, itertools.chain(*of_slots), alone | self._always_effective
            ),
        )


def _masks(slot: _Slot, anchor: model.Anchor, satisfying: Sequence[frozenset[int]]) -> set[Mask]:
    """Return the sets of conditions that fail for a provider with the inventories."""
    return {
        sum(1 << number for number in slot.numbers if provider.id not in satisfying[number])
        for provider in anchor.providers
        if all(class_id in provider.inventories for class_id in slot.classes)
    }


def _minimal(masks: set[Mask]) -> frozenset[Mask]:
    """Return the masks of which no other mask is a subset."""
    return frozenset(
        mask for mask in masks if not any(other != mask and not other & ~mask for other in masks)
    )


def _always_effective(all_conditions: Sequence[Condition]) -> Mask:
    """Return the conditions that can affect candidates even if each provider satisfies them alone.

    The amounts of several slots are added up, same_subtree and group_policy concern several
    providers, and in the unsuffixed group, the expressions of member_of must be satisfied by the
    same provider, and the required traits by all providers together.
    """
    requests = Counter(c.name for c in all_conditions if c.kind is Kind.RESOURCES)
    return sum(
        1 << number
        for number, condition in enumerate(all_conditions)
        if condition.kind in _OF_SEVERAL_PROVIDERS
        or (condition.kind is Kind.RESOURCES and requests[condition.name] > 1)
        or (condition.kind in (Kind.REQUIRED, Kind.MEMBER_OF) and not condition.suffix)
    )


def _slots(all_conditions: Sequence[Condition], ids: request.Ids) -> list[_Slot]:
    by_suffix: dict[str, list[int]] = {}
    for number, condition in enumerate(all_conditions):
        if condition.suffix is not None:
            by_suffix.setdefault(condition.suffix, []).append(number)
    slots = []
    for suffix, numbers in by_suffix.items():
        resources = [n for n in numbers if all_conditions[n].kind is Kind.RESOURCES]
        if suffix:
            classes = tuple(ids.classes[all_conditions[n].name] for n in resources)
            slots.append(_Slot(classes, tuple(numbers)))
            continue
        others = [n for n in numbers if all_conditions[n].kind in _OF_EACH_PROVIDER]
        slots += [_Slot((ids.classes[all_conditions[n].name],), (n, *others)) for n in resources]
    return slots


# Checks of one condition ------------------------------------------------------

# Returns the providers of an anchor that satisfy a condition.
_Check = Callable[[model.Anchor], Iterable[model.Provider]]


def _check_of(condition: Condition, ids: request.Ids) -> _Check:
    if condition.kind in _OF_SEVERAL_PROVIDERS:
        return lambda anchor: anchor.providers
    query = request.with_ids(conditions.query_of([condition], (), nested=True), ids)
    if condition.suffix is None:
        return lambda anchor: [anchor.root] if eligibility.is_anchor(anchor.root, query) else []
    (group,) = query.groups
    if condition.kind is Kind.RESOURCES:
        return _allocates(group)
    if condition.suffix:
        return _satisfies_alone(group)
    if condition.kind is Kind.REQUIRED:
        return _has_trait(group)
    return lambda anchor: eligibility.permitted_providers(group, anchor)


def _allocates(group: model.Group[int]) -> _Check:
    ((class_id, amount),) = group.amounts
    return lambda anchor: (
        provider
        for provider in anchor.providers
        if eligibility.can_allocate(provider, class_id, amount)
    )


def _satisfies_alone(group: model.Group[int]) -> _Check:
    slot = model.Slot(group, ())
    return lambda anchor: (
        provider
        for provider in anchor.providers
        if eligibility.satisfies_suffixed_group(provider, slot)
    )


def _has_trait(group: model.Group[int]) -> _Check:
    return lambda anchor: (
        provider
        for provider in anchor.providers
        if eligibility.satisfies_required(provider.traits, group)
    )
