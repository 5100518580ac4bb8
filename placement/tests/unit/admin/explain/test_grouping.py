"""A search for each pattern has the same result as a search for each anchor, in random worlds."""

from collections.abc import Iterable
import itertools
import random
from unittest import mock

from placement.admin.explain import conditions, judge, patterns, provider_kinds
from placement.admin.explain.checks import Checks
from placement.candidates import model, request
from placement.candidates.budget import SearchLimit
from placement.tests import worlds
from placement.tests.properties import UnmeasuredTestCase, examples

Pairs = list[tuple[str, str]]

SEEDS = examples(150)
CLASSES, TRAITS, AGGREGATES = ('VCPU', 'DISK_GB'), ('T1', 'T2'), ('A', 'B')


class Ungrouped(patterns.Patterns):
    """Each anchor has a pattern of its own, whose example is not reduced."""

    def add(self, anchors: Iterable[model.Anchor]) -> None:
        for anchor in anchors:
            example = anchor._replace(
                root=self.complete(anchor.root),
                tree=tuple(map(self.complete, anchor.tree)),
                sharing_providers=tuple(map(self.complete, anchor.sharing_providers)),
            )
            self.anchors[anchor.root.id, 0] = patterns.AnchorPattern(example, [anchor.root.id])

    def complete(self, provider: model.Provider) -> model.Provider:
        """Return the provider with inventories that stand for the presence of inventories."""
        reduced = self._kinds.example(provider, provider.id)
        return provider._replace(inventories={**provider.inventories, **reduced.inventories})


class GroupingTest(UnmeasuredTestCase):
    def test_random_worlds(self) -> None:
        fewer = 0
        for seed in range(SEEDS):
            rng = random.Random(seed)
            world, pairs = random_world(rng), random_query(rng)
            # With a maximum of 5, the sums of many queries are not computed.
            with mock.patch.object(provider_kinds, '_MAX_SUMS', rng.choice((5, 4096))):
                grouped, ungrouped = judges(world, pairs)
            every = grouped.all_conditions
            pairs_of_conditions = list(itertools.combinations(every, 2))
            some = rng.sample(pairs_of_conditions, min(len(pairs_of_conditions), 4))
            for relaxed in ((), *((condition,) for condition in every), *some):
                nested = rng.random() < 0.7
                expected = ungrouped.trees(relaxed, nested, SearchLimit())
                found = grouped.trees(relaxed, nested, SearchLimit())
                self.assertEqual(expected, found, f'seed {seed}: {pairs}, {relaxed}')
            fewer += pattern_count(grouped) < pattern_count(ungrouped)
        self.assertGreater(fewer, SEEDS // 20)


def judges(world: worlds.World, pairs: Pairs) -> list[judge.Judge]:
    query = request.parse(pairs, worlds.NEWEST)
    every = conditions.conditions_of(pairs, worlds.NEWEST, query)
    checks = Checks(every, world.ids)
    result = []
    for kind in (patterns.Patterns, Ungrouped):
        found = kind(request.with_ids(query, world.ids))
        found.add(world.anchors)
        by_failures = judge.by_failures(checks, found.anchors.values(), lambda _count: None)
        result.append(judge.Judge(every, world.ids, by_failures))
    return result


def pattern_count(of: judge.Judge) -> int:
    return sum(map(len, of.failures.values()))


def random_world(rng: random.Random) -> worlds.World:
    """Return a world of two to twelve trees of one to three providers."""
    hosts: list[worlds.Host] = []
    for tree in range(rng.randint(2, 12)):
        names: list[str] = []
        for number in range(rng.choice((1, 1, 2, 3))):
            traits = [name for name in TRAITS if rng.random() < 0.4]
            traits += ['SHARE'] if rng.random() < 0.15 else []
            hosts.append(
                worlds.Host(
                    name=f'T{tree}_{number}',
                    parent=rng.choice(names) if names else None,
                    inventories=random_inventories(rng),
                    traits=tuple(traits),
                    aggregates=tuple(name for name in AGGREGATES if rng.random() < 0.35),
                )
            )
            names.append(hosts[-1].name)
    return worlds.World(tuple(hosts))


def random_inventories(rng: random.Random) -> dict[str, dict[str, float]]:
    return {
        name: {
            'total': rng.randint(1, 14),
            'reserved': rng.choice((0, 0, 2)),
            'min_unit': rng.choice((1, 1, 2)),
            'max_unit': rng.choice((2**31 - 1, 2**31 - 1, 9)),
            'step_size': rng.choice((1, 1, 1, 2)),
            'allocation_ratio': rng.choice((1.0, 1.5)),
            'used': rng.choice((0, 0, 1, 3, 5)),
        }
        for name in rng.sample(CLASSES, rng.choice((0, 1, 1, 2, 2)))
    }


def random_query(rng: random.Random) -> Pairs:
    """Return a query with up to six suffixed groups."""
    count = rng.randint(1, 6)
    pairs = [('group_policy', rng.choice(('none', 'isolate')))]
    for number in range(count):
        pairs.append((f'resources_{number}', random_amounts(rng)))
        if rng.random() < 0.3:
            traits = rng.choice(('CUSTOM_T1', '!CUSTOM_T2', 'in:CUSTOM_T1,CUSTOM_T2'))
            pairs.append((f'required_{number}', traits))
        if rng.random() < 0.2:
            aggregate = worlds.uuid_of(rng.choice(AGGREGATES))
            pairs.append((f'member_of_{number}', rng.choice(('', '!')) + aggregate))
    if rng.random() < 0.5:
        pairs.append(('resources', random_amounts(rng)))
    if count > 1 and rng.random() < 0.5:
        together = rng.sample(range(count), rng.randint(2, count))
        pairs.append(('same_subtree', ','.join(f'_{number}' for number in together)))
    return pairs


def random_amounts(rng: random.Random) -> str:
    classes = rng.sample(CLASSES, rng.choice((1, 1, 2)))
    return ','.join(f'{name}:{rng.randint(1, 4)}' for name in classes)
