"""Runs the steps of an explanation on one snapshot of the database.

The evidence is where providers and trees are lost, and the trees in which the fewest are.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa

from placement import capacity
from placement.admin import cloud, query_text
from placement.admin.cloud import Cloud
from placement.admin.console import Progress
from placement.admin.explain import conditions, search
from placement.admin.explain.conditions import Condition
from placement.admin.explain.search import Json, Relaxation, Search, satisfying
from placement.candidates import eligibility, model, request
from placement.candidates.selection import Budget
from placement.microversion import Version

# The checks of a group, in the order of the funnel. The first ones are those of one amount.
CHECKS = ('inventory', 'units', 'capacity', 'free_capacity', 'in_tree', 'aggregates', 'traits')
# The number of checks that an amount passes if its free capacity is too small, and that of all.
_FREE_CAPACITY, _ALL = 3, 4

# Provider id -> name.
Names = Mapping[int, str]


@dataclass(frozen=True, slots=True, order=True)
class Lack:
    """A host that would have candidates with so much more free capacity of one class.

    :ivar part: this amount as a part of the requested one
    """

    part: float
    host: str
    class_name: str
    amount: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a query has no candidates.

    :ivar document: the JSON document. `relaxations` has the sets whose search reached the search
        limit, too
    :ivar hosts: the names of the trees with candidates, in a list for each kind of host
    :ivar lack: the host that lacks the smallest part of an amount, and nothing else
    :ivar by_condition: for each key, the number of roots that satisfy this condition alone, and
        those before it
    :ivar nearest: why conditions fail in the trees in which the fewest fail, and their names, in a
        list for each combination of reasons
    """

    document: Json
    hosts: list[list[str]]
    lack: Lack | None
    by_condition: list[tuple[str, int]]
    nearest: list[tuple[tuple[str, ...], list[str]]]


def explain(
    conn: sa.Connection,
    found: Cloud,
    text: str,
    version: Version,
    max_steps: int,
    listed: int,
    progress: Progress,
) -> Explanation:
    """Return the explanation of a query.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param found: all of the cloud, except for the usage of projects
    :param text: the query as the operator wrote it
    :param max_steps: the search limit; negative for no limit
    :param listed: the maximum number of nearest trees to list
    :raises CannotProceedError: the API refuses the query, or a class or trait of the query does not
        exist
    """
    with query_text.refusing():
        named = query_text.parse(text, version)
        ids = cloud.look_up(conn, named, found.ids)
        query = request.with_ids(named, ids)
    every = conditions.conditions_of(query_text.pairs(text), named, ids)
    providers = [conditions.with_presence(one, query.classes) for one in found.providers]
    anchors = cloud.anchors(providers, ids.sharing_id, bool(query.same_subtrees))
    searched = search.search_of(every, query.nested, anchors, progress)
    with progress('Searching candidates') as advance:
        candidates = searched.trees((), Budget(max_steps), advance)
    newer = {}
    if not query.nested:
        trees = replace(searched, nested=True).trees((), Budget(max_steps))
        newer['candidates_in_1.29'] = trees.document
    relaxations: list[Relaxation] = []
    pairs_omitted = False
    if not (candidates.anchors or candidates.cut):
        relaxations, pairs_omitted = searched.relaxations(max_steps, progress)
    nearest, equal = _nearest(searched, listed, found.names)
    return Explanation(
        document={
            'query': text,
            'microversion': str(version),
            'candidates': candidates.document,
            **newer,
            'conditions': [{'key': condition.key} for condition in every],
            'relaxations': [_of_relaxation(*one) for one in relaxations],
            'pairs_omitted': pairs_omitted,
            'funnel': [
                *_of_groups(query, named, anchors),
                {'roots': _of_roots(query, searched, candidates.document)},
            ],
            'nearest': nearest,
        },
        hosts=_equal_hosts(candidates.anchors, found.names),
        lack=_smallest_lack(relaxations, found.names),
        by_condition=[
            (one.key, searched.count(every[:number])) for number, one in enumerate(every, 1)
        ],
        nearest=equal,
    )


def _of_relaxation(without: Iterable[Condition], trees: search.Trees) -> Json:
    """Return what fits without some conditions."""
    found = {'cut': True} if trees.cut else trees.document
    return {'without': [one.key for one in without], **found}


# The funnel -------------------------------------------------------------------


def _of_groups(
    query: model.Query[int], names: model.Query[str], anchors: Iterable[model.Anchor]
) -> Iterator[Json]:
    """Yield how many providers of the cloud remain after each check of a request group.

    The unsuffixed group has a funnel for each class.

    :param names: the same query with names
    """
    for group, named in zip(query.groups, names.groups, strict=True):
        every = list(zip(group.amounts, named.amounts, strict=True))
        for some in [every] if group.suffix else [[one] for one in every]:
            remaining = _remaining(replace(group, amounts=tuple(ids for ids, _ in some)), anchors)
            resources = dict(amount for _, amount in some)
            yield {'group': group.suffix, 'resources': resources, 'providers': remaining}


def _remaining(group: model.Group[int], anchors: Iterable[model.Anchor]) -> dict[str, int]:
    """Return the number of providers that remain after each of `CHECKS`, in their order."""
    remaining = dict.fromkeys(CHECKS, 0)
    # The checks after those of the amounts, each with the checks before it.
    later = (
        model.Group(group.suffix, in_tree=group.in_tree),
        replace(group, amounts=(), required=(), forbidden=frozenset()),
        replace(group, amounts=()),
    )
    for anchor in anchors:
        passed = {
            provider.id: min((_passed(provider, *one)[0] for one in group.amounts), default=_ALL)
            for provider in anchor.tree
        }
        for number, name in enumerate(CHECKS[:_ALL]):
            remaining[name] += sum(checks > number for checks in passed.values())
        for name, part in zip(CHECKS[_ALL:], later, strict=True):
            found = satisfying(part, anchor)
            remaining[name] += sum(passed.get(provider.id) == _ALL for provider in found)
    return remaining


def _passed(provider: model.Provider, class_id: int, amount: int) -> tuple[int, str]:
    """Return how many of the checks of an amount are passed, and why the next one fails."""
    inventory = provider.inventories.get(class_id)
    if inventory is None:
        return 0, ''
    _, _, _, min_unit, max_unit, step_size, _, used = inventory
    if limit := capacity.unit_violation(amount, min_unit, max_unit, step_size):
        return 1, f'{limit} {getattr(inventory, limit)}'
    if not capacity.fits(amount, 0, inventory.capacity):
        return 2, f'capacity {int(inventory.capacity)}'
    if not capacity.fits(amount, used, inventory.capacity):
        return _FREE_CAPACITY, f'{used} of {int(inventory.capacity)} used'
    return _ALL, ''


def _of_roots(query: model.Query[int], search: Search, candidates: Json) -> Json:
    """Return how many roots remain after each check.

    :param candidates: the trees that have candidates
    """
    slots = model.slots_of(query)
    served = [
        anchor
        for failing, anchor in search.anchors
        if not failing and all(eligibility.eligible_providers(slot, anchor) for slot in slots)
    ]
    of_roots = [one for one in search.conditions if one.suffix is None]
    return {
        'all': len(search.anchors),
        'root_required': search.count(of_roots),
        'every_group_served': len(served),
        'candidates': candidates,
    }


# The nearest trees ------------------------------------------------------------


def _nearest(
    search: Search, listed: int, names: Names
) -> tuple[list[Json], list[tuple[tuple[str, ...], list[str]]]]:
    """Return the trees in which the fewest conditions fail alone, and why, sorted by name.

    :returns: at most `listed` trees for the document; and for each combination of reasons the names
        of these trees, and of all others in which as few conditions fail
    """
    near = sorted(search.anchors, key=lambda one: (len(one[0]), names[one[1].root.id]))
    most = max((len(failing) for failing, _ in near[:listed]), default=-1)
    trees: list[Json] = []
    equal: dict[tuple[str, ...], list[str]] = {}
    for failing, anchor in near:
        if len(failing) > most:
            break
        name = names[anchor.root.id]
        facts = {c.key: _fact(c, anchor, names) for c in search.conditions if c.key in failing}
        equal.setdefault(tuple(facts.values()), []).append(name)
        if len(trees) < listed:
            failures = [{'key': key, 'fact': fact} for key, fact in facts.items()]
            trees.append({'name': name, 'uuid': anchor.root.uuid, 'failures': failures})
    return trees, list(equal.items())


# Kind -> the text for one name, and the text for several names.
_TEXTS = {
    conditions.REQUIRED: ('lacks {}', 'has none of {}'),
    conditions.FORBIDDEN: ('has the forbidden trait {}', ''),
    conditions.MEMBER_OF: ('is not in the aggregate {}', 'is in none of the aggregates {}'),
    conditions.FORBIDDEN_AGGREGATES: (
        'is in the forbidden aggregate {}',
        'is in one of the forbidden aggregates {}',
    ),
    conditions.IN_TREE: ('is not the tree of {}', ''),
    conditions.ROOT_REQUIRED: ('the root lacks {}', ''),
    conditions.ROOT_FORBIDDEN: ('the root has the forbidden trait {}', ''),
}


def _fact(condition: Condition, anchor: model.Anchor, names: Names) -> str:
    if condition.kind == conditions.RESOURCES:
        text = _amount(condition, anchor, names)
    else:
        one, several = _TEXTS[condition.kind]
        text = (several if len(condition.names) > 1 else one).format(', '.join(condition.names))
    return f'{text} (group {condition.suffix})' if condition.suffix else text


def _amount(condition: Condition, anchor: model.Anchor, names: Names) -> str:
    """Return why no provider can allocate the amount, for the provider that comes closest."""
    (name,) = condition.names
    best = _closest(condition, anchor, names)
    if best is None:
        return f'has no inventory of {name}'
    where = '' if best.id == anchor.root.id else f' on {names[best.id]}'
    _, reason = _passed(best, *condition.amount)
    return f'{name} {reason}{where}, {condition.amount[1]} requested'


def _closest(condition: Condition, anchor: model.Anchor, names: Names) -> model.Provider | None:
    """Return the provider that comes closest to an amount; None without an inventory."""
    class_id, amount = condition.amount
    able = [provider for provider in anchor.providers if class_id in provider.inventories]
    # If several providers come closest, the first one by name, whatever the order of the rows is.
    able.sort(key=lambda provider: names[provider.id])
    return max(
        able,
        key=lambda one: (_passed(one, class_id, amount)[0], one.inventories[class_id].free),
        default=None,
    )


def _smallest_lack(relaxations: Iterable[Relaxation], names: Names) -> Lack | None:
    """Return the host that lacks the smallest part of an amount, and nothing else."""
    lacks = []
    for (condition, *others), trees in relaxations:
        if others or condition.kind != conditions.RESOURCES:
            continue
        class_id, amount = condition.amount
        for anchor in trees.anchors:
            best = _closest(condition, anchor, names)
            if best and _passed(best, class_id, amount)[0] == _FREE_CAPACITY:
                host, lack = names[anchor.root.id], amount - best.inventories[class_id].free
                lacks.append(Lack(lack / amount, host, condition.names[0], lack))
    return min(lacks, default=None)


def _equal_hosts(anchors: Iterable[model.Anchor], names: Names) -> list[list[str]]:
    """Return the names of the roots, in a list for each kind of host.

    Hosts of one kind have the same inventories, whatever their usage is.
    """
    kinds: dict[object, list[str]] = {}
    for anchor in sorted(anchors, key=lambda anchor: names[anchor.root.id]):
        inventories = (one[:-1] for p in anchor.tree for one in p.inventories.values())
        kinds.setdefault(tuple(sorted(inventories)), []).append(names[anchor.root.id])
    return list(kinds.values())
