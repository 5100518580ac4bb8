"""Hypothesis strategies that generate small worlds and queries."""

from collections import Counter
import random

import hypothesis
from hypothesis import strategies as st

from placement.candidates import model
from placement.tests import worlds

# There are few names, so that queries often request what providers have.
_CLASSES = ('VCPU', 'DISK_GB', 'SRIOV_NET_VF')
_TRAITS = ('T1', 'T2', 'AVX')
_AGGREGATES = ('A', 'B')
_SUFFIXES = ('_1', '_2', '_3')

_inventories = st.fixed_dictionaries(
    {
        'total': st.integers(1, 5),
        'reserved': st.integers(0, 1),
        'min_unit': st.sampled_from((1, 1, 1, 2)),
        'max_unit': st.integers(1, 5),
        'step_size': st.sampled_from((1, 1, 1, 2)),
        'allocation_ratio': st.sampled_from((1.0, 1.0, 1.5, 0.7)),
        'used': st.integers(0, 2),
    }
)


@st.composite
def clouds(draw: st.DrawFn) -> worlds.World:
    """Generate a world of up to seven providers."""
    hosts: list[worlds.Host] = []
    for number in range(draw(st.integers(1, 7))):
        parents = [None, *(host.name for host in hosts)]
        traits = draw(st.sets(st.sampled_from(_TRAITS), max_size=2))
        if draw(st.integers(0, 3)) == 0:
            traits.add('SHARE')
        hosts.append(
            worlds.Host(
                name=f'P{number}',
                parent=draw(st.sampled_from(parents)),
                inventories=draw(
                    st.dictionaries(st.sampled_from(_CLASSES), _inventories, max_size=3)
                ),
                traits=tuple(sorted(traits)),
                aggregates=tuple(sorted(draw(st.sets(st.sampled_from(_AGGREGATES))))),
            )
        )
    return worlds.World(tuple(hosts))


@st.composite
def queries(draw: st.DrawFn, world: worlds.World) -> model.Query[int]:
    """Generate a query whose names exist in the world."""
    ids = world.ids
    traits = st.sampled_from([ids.traits[worlds.trait(name)] for name in (*_TRAITS, 'SHARE')])
    aggregates = st.sampled_from(sorted(ids.aggregates.values()) or [99])
    amounts = st.dictionaries(
        st.sampled_from([ids.classes[name] for name in _CLASSES]), st.integers(1, 3), max_size=2
    )
    nested = draw(st.integers(0, 3)) > 0
    rarely = st.sampled_from((0, 0, 0, 0, 1))

    def group(suffix: str) -> model.Group[int]:
        any_sets = draw(st.lists(st.frozensets(traits, min_size=1, max_size=2), max_size=1))
        forbidden = draw(st.frozensets(traits, max_size=1)) if draw(rarely) else frozenset()
        tree = draw(st.sampled_from(sorted(ids.roots.values()))) if draw(rarely) else None
        resources = draw(amounts)
        if not resources and (not suffix or not nested):
            resources = {ids.classes['VCPU']: 1}
        return model.Group(
            suffix=suffix,
            amounts=tuple(resources.items()),
            required=tuple(any_sets) if draw(st.booleans()) else (),
            forbidden=forbidden,
            member_of=tuple(draw(st.lists(st.frozensets(aggregates, min_size=1), max_size=2)))
            if draw(rarely)
            else (),
            forbidden_aggregates=draw(st.frozensets(aggregates)) if draw(rarely) else frozenset(),
            in_tree=tree,
        )

    suffixes = draw(st.lists(st.sampled_from(_SUFFIXES), unique=True, max_size=3))
    groups = [group(suffix) for suffix in suffixes]
    if not suffixes or draw(st.booleans()):
        groups.insert(0, group(''))
    # The API refuses other queries.
    hypothesis.assume(any(one.amounts for one in groups))
    together = st.frozensets(st.sampled_from(suffixes), min_size=1) if suffixes else st.nothing()
    return model.Query(
        groups=tuple(groups),
        isolate=draw(st.booleans()),
        root_required=draw(st.frozensets(traits, max_size=1)) if draw(rarely) else frozenset(),
        root_forbidden=draw(st.frozensets(traits, max_size=1)) if draw(rarely) else frozenset(),
        same_subtrees=tuple(draw(st.lists(together, max_size=2))) if suffixes and nested else (),
        nested=nested,
    )


@st.composite
def searches(draw: st.DrawFn) -> tuple[worlds.World, model.Query[int]]:
    """Generate a world and a query for this world."""
    world = draw(clouds())
    return world, draw(queries(world))


@st.composite
def sharing_searches(draw: st.DrawFn) -> tuple[worlds.World, model.Query[int]]:
    """Generate trees with few inventories, sharing providers, and a query for several classes."""
    inventories = st.builds(worlds.inventory, st.integers(2, 4), st.integers(0, 3))
    aggregates = st.sets(st.sampled_from(_AGGREGATES), min_size=1)

    def host(name: str, least: int, most: int, traits: tuple[str, ...]) -> worlds.Host:
        by_class = st.dictionaries(
            st.sampled_from(_CLASSES), inventories, min_size=least, max_size=most
        )
        return worlds.Host(
            name=name,
            inventories=draw(by_class),
            traits=traits,
            aggregates=tuple(sorted(draw(aggregates))),
        )

    hosts = [host(f'S{n}', 1, 2, ('SHARE',)) for n in range(draw(st.integers(1, 3)))]
    hosts += [host(f'H{n}', 0, 2, ()) for n in range(draw(st.integers(1, 4)))]
    world = worlds.World(tuple(draw(st.permutations(hosts))))
    classes = draw(st.lists(st.sampled_from(_CLASSES), unique=True, min_size=2))
    amounts = tuple((world.ids.classes[name], draw(st.integers(1, 2))) for name in classes)
    suffixed = draw(st.integers(0, 1))  # how many classes a suffixed group requests
    groups = [model.Group(suffix='', amounts=amounts[suffixed:])]
    groups += [model.Group(suffix='_1', amounts=(item,)) for item in amounts[:suffixed]]
    return world, model.Query(groups=tuple(groups))


@st.composite
def contended_searches(draw: st.DrawFn) -> tuple[worlds.World, model.Query[int]]:
    """Generate a small tree, and a query whose groups all request the same class."""
    hosts = [
        worlds.Host(
            name=f'P{number}',
            parent='P0' if number else None,
            inventories={'VCPU': {**draw(_inventories), 'min_unit': 1, 'step_size': 1}},
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    world = worlds.World(tuple(hosts))
    groups = tuple(
        model.Group(suffix=suffix, amounts=((world.ids.classes['VCPU'], draw(st.integers(1, 2))),))
        for suffix in draw(st.sampled_from((('', '_1'), ('_1', '_2'), ('', '_1', '_2'), _SUFFIXES)))
    )
    return world, model.Query(groups=groups, isolate=draw(st.booleans()))


@st.composite
def packings(draw: st.DrawFn) -> tuple[worlds.World, model.Query[int]]:
    """Generate a tree, and a query for unequal amounts that nearly exhaust the tree."""
    names = draw(st.sampled_from((('VCPU',), ('VCPU', 'DISK_GB'))))
    totals = draw(st.lists(st.sampled_from((6, 6, 8)), min_size=2, max_size=4))
    hosts = [worlds.Host(name='R')]
    hosts += [
        worlds.Host(
            name=f'P{number}',
            parent='R',
            inventories={name: worlds.inventory(total) for name in names},
        )
        for number, total in enumerate(totals)
    ]
    world = worlds.World(tuple(hosts))
    count = draw(st.integers(3, 6))
    amounts = st.fixed_dictionaries(
        {world.ids.classes[name]: st.sampled_from((1, 2, 3, 4, 5)) for name in names}
    )
    groups = tuple(
        model.Group(suffix=f'_{number}', amounts=tuple(draw(amounts).items()))
        for number in range(count)
    )
    return world, model.Query(groups=groups, isolate=draw(st.sampled_from((False, False, True))))


def tight_searches() -> st.SearchStrategy[tuple[worlds.World, model.Query[int]]]:
    """Generate a tree with little more than the groups of a query request.

    Hypothesis draws only a seed, because drawing each number would take ten times as long.
    """
    return st.builds(_tight_search, st.randoms(use_true_random=True))


def _tight_search(rng: random.Random) -> tuple[worlds.World, model.Query[int]]:
    isolate, classes = rng.random() < 0.5, _CLASSES[: rng.randint(1, 2)]
    most, required = rng.choice((1, 2, 3)), rng.choice((0, 0.5))
    totals = [Counter({name: rng.choice((0, 0, 1)) for name in classes}) for _ in range(4)]
    totals = totals[: rng.randint(2, 4)]
    requests = {}
    for suffix in rng.choice((('', '_1', '_2', '_3'), ('_1', '_2', '_3', '_4'))):
        few = rng.sample(classes, rng.randint(1, len(classes))) if suffix else classes
        requests[suffix] = Counter({name: rng.randint(1, most) for name in few})
    unused = rng.sample(totals, len(totals))
    for suffix, amounts in requests.items():
        total = unused.pop() if suffix and isolate and unused else rng.choice(totals)
        total.update(amounts)
    world = worlds.World(
        tuple(
            worlds.Host(
                name=f'P{number}',
                parent='P0' if number else None,
                inventories={name: worlds.inventory(n) for name, n in total.items() if n},
                traits=tuple(name for name in _TRAITS[:2] if rng.random() < required),
            )
            for number, total in enumerate(totals)
        )
    )
    traits = [frozenset({world.ids.traits[worlds.trait(name)]}) for name in _TRAITS[:2]]
    groups = tuple(
        model.Group(
            suffix=suffix,
            amounts=tuple((world.ids.classes[name], n) for name, n in amounts.items()),
            required=(rng.choice(traits),) if rng.random() < required else (),
        )
        for suffix, amounts in requests.items()
    )
    return world, model.Query(groups=groups, isolate=isolate)
