"""Finds the largest free capacity and the largest max_unit for a relaxed amount."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from placement.admin.explain import conditions
from placement.admin.explain.conditions import Kind
from placement.admin.explain.judge import Judge
from placement.admin.explain.patterns import Largest, Patterns, ProviderPattern
from placement.admin.explain.relaxations import Relaxed
from placement.candidates import eligibility, model, request


@dataclass(frozen=True, slots=True)
class MostFreeIds:
    """The largest free capacity and the largest max_unit, with the ids of their providers."""

    free: Largest
    max_unit: Largest


def of_relaxation(relaxed: Relaxed, judge: Judge, patterns: Patterns) -> dict[str, MostFreeIds]:
    """Return the key of each relaxed amount -> what the providers of its group have.

    The providers are those with an inventory of the class that satisfy the conditions of the group
    that are not relaxed; see `_most_free`. A key is missing if there is no such provider.
    """
    query = conditions.query_of(judge.all_conditions, relaxed.without, nested=True)
    with_ids = conditions.with_presence(request.with_ids(query, judge.ids))
    groups = {group.suffix: group for group in with_ids.groups}
    found = {}
    for condition in relaxed.without:
        if condition.kind is Kind.RESOURCES:
            group = groups[condition.suffix or '']
            most = _most_free(group, judge.ids.classes[condition.name], patterns)
            if most.free.provider_ids:
                found[condition.key] = most
    return found


# Whether a provider satisfies a group, of which the amount of a class is relaxed.
_Serves = Callable[[ProviderPattern, model.Group[int], int], bool]


def _most_free(group: model.Group[int], class_id: int, patterns: Patterns) -> MostFreeIds:
    """Return what the providers have that satisfy the group alone.

    For the unsuffixed group, the sharing providers that may serve the class for other trees count
    too: a host can have the other classes. If there are none of both, because the group needs
    several providers of a tree, the providers count that may serve the class.
    """
    found = _of_serving(_serves_alone, group, class_id, patterns.providers.values())
    if not group.suffix:
        _merge(found, _of_serving(_serves_others, group, class_id, patterns.sharing.values()))
    if found.free.provider_ids or group.suffix:
        return found
    return _of_serving(_serves_class, group, class_id, patterns.providers.values())


def _merge(most: MostFreeIds, other: MostFreeIds) -> None:
    most.free.merge(other.free)
    most.max_unit.merge(other.max_unit)


def _of_serving(
    serves: _Serves,
    group: model.Group[int],
    class_id: int,
    providers: Iterable[ProviderPattern],
) -> MostFreeIds:
    free, max_unit = Largest(), Largest()
    for pattern in providers:
        if class_id in pattern.classes and serves(pattern, group, class_id):
            facts = pattern.classes[class_id]
            free.merge(facts.free)
            max_unit.merge(facts.max_unit)
    return MostFreeIds(free, max_unit)


def _serves_alone(pattern: ProviderPattern, group: model.Group[int], class_id: int) -> bool:
    provider = pattern.provider
    if group.suffix:
        return eligibility.satisfies_suffixed_group(provider, model.Slot(group, group.amounts))
    return (
        all(eligibility.can_allocate(provider, id_, amount) for id_, amount in group.amounts)
        and eligibility.satisfies_required(provider.traits, group)
        and _serves_class(pattern, group, class_id)
    )


def _serves_class(pattern: ProviderPattern, group: model.Group[int], class_id: int) -> bool:
    """Whether the provider may serve the class as one of several of the unsuffixed group."""
    anchor = model.Anchor(pattern.root, (pattern.provider,))
    return bool(eligibility.eligible_for_classes((_slot(group, class_id),), anchor))


def _serves_others(pattern: ProviderPattern, group: model.Group[int], class_id: int) -> bool:
    """Whether a sharing provider may serve the class for other trees."""
    return eligibility.can_serve_other_trees(pattern.provider, _slot(group, class_id))


def _slot(group: model.Group[int], class_id: int) -> model.Slot:
    """Return the slot of a class of the unsuffixed group whose amount is relaxed."""
    return model.Slot(group, ((conditions.presence(class_id), 1),))
