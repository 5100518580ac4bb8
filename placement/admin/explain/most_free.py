"""Finds the largest free capacity and the largest max_unit for a relaxed amount."""

from collections.abc import Iterable
from dataclasses import dataclass

from placement.admin.explain import conditions, patterns
from placement.admin.explain.conditions import Kind
from placement.admin.explain.judge import Judge
from placement.admin.explain.patterns import Largest, ProviderPattern
from placement.admin.explain.relaxations import Relaxed
from placement.candidates import model, provider_checks, request


@dataclass(frozen=True, slots=True)
class MostFreeIds:
    """The largest free capacity and the largest max_unit, with the ids of their providers."""

    free: Largest
    max_unit: Largest


def of_relaxation(
    relaxed: Relaxed, judge: Judge, providers: Iterable[ProviderPattern]
) -> dict[str, MostFreeIds]:
    """Return the key of each relaxed amount -> what the providers of its group have.

    The providers are those with an inventory of the class that satisfy the conditions of the group
    that are not relaxed. A key is missing if there is no such provider.
    """
    query = conditions.query_of(judge.all_conditions, relaxed.without, nested=True)
    with_ids = conditions.with_presence(request.with_ids(query, judge.ids))
    groups = {group.suffix: group for group in with_ids.groups}
    providers = list(providers)
    found = {}
    for condition in relaxed.without:
        if condition.kind is Kind.RESOURCES:
            group = groups[condition.suffix or '']
            most = _most_free(group, judge.ids.classes[condition.name], providers)
            if most.free.provider_ids:
                found[condition.key] = most
    return found


def _most_free(
    group: model.Group[int], class_id: int, providers: Iterable[ProviderPattern]
) -> MostFreeIds:
    free, max_unit = Largest(), Largest()
    for pattern in providers:
        if class_id in pattern.classes and _may_serve(pattern, group, class_id):
            facts = pattern.classes[class_id]
            free.merge(facts.free)
            max_unit.merge(facts.max_unit)
    return MostFreeIds(free, max_unit)


def _may_serve(pattern: ProviderPattern, group: model.Group[int], class_id: int) -> bool:
    """Whether the provider satisfies the group, of which the amount of this class is relaxed."""
    present = conditions.presence(class_id)
    provider = patterns.with_presence(
        pattern.provider, [conditions.presence(id_) for id_, _ in group.amounts if id_ < 0]
    )
    if group.suffix:
        return provider_checks.satisfies_suffixed_group(provider, model.Slot(group, group.amounts))
    slot = model.Slot(group, ((present, 1),))
    return bool(
        provider_checks.eligible_for_classes((slot,), model.Anchor(pattern.root, (provider,)))
    )
