"""The free capacity that a query cannot use, in random clouds and in examples."""

import ddt
from oslotest import base

from placement.admin.headroom import render, report
from placement.admin.headroom.fragmentation import Fragmentation, fragmentation
from placement.admin.headroom.report import Headroom
from placement.candidates import model
from placement.tests import worlds
from placement.tests.properties import seeds
from placement.tests.unit.admin.headroom import clouds
from placement.tests.unit.admin.headroom.definition import simulate
from placement.tests.worlds import naive


def definition(query: model.Query[int], world: worlds.World) -> dict[int, int]:
    """Return the free capacity of the suitable providers, by class id."""
    found: dict[tuple[int, int], int] = {}
    slots = model.slots_of(query)
    for anchor in world.anchors:
        if query.root_required - anchor.root.traits or query.root_forbidden & anchor.root.traits:
            continue
        suitable = [
            [p for p in anchor.providers if naive._can_serve(slot, unlimited(p), anchor.root)]
            for slot in slots
        ]
        unsuffixed = [p for n, slot in enumerate(slots) if not slot.suffixed for p in suitable[n]]
        if not all(suitable) or not all(
            any(any_set & p.traits for p in unsuffixed) for any_set in query.collective_traits
        ):
            continue
        for slot, providers in zip(slots, suitable, strict=True):
            for class_id, _ in slot.amounts:
                for p in providers:
                    inventory = p.inventories[class_id]
                    free = int(inventory.capacity) - inventory.used
                    found[p.id, class_id] = max(0, free)
    return {
        class_id: sum(n for (_, one), n in found.items() if one == class_id)
        for class_id in query.classes
    }


def unlimited(provider: model.Provider) -> model.Provider:
    """Return the provider with inventories that permit each amount."""
    return provider._replace(
        inventories={
            class_id: model.ProviderInventory(class_id, 10**9, 0, 1, 10**9, 1, 1.0, 0)
            for class_id in provider.inventories
        }
    )


def unused(query: model.Query[int], world: worlds.World) -> Fragmentation[int]:
    steps = simulate(query, world).steps
    return fragmentation(report.prepared_query(query), world.anchors, steps)


class RandomCloudsTest(base.BaseTestCase):
    def test_lost(self):
        lossy = 0
        for seed in seeds(300):
            case = clouds.case(seed)
            with self.subTest(seed=seed):
                query, found = case.query, unused(case.query, case.world)
                fits = simulate(query, case.world).fits
                free = definition(query, case.world)
                self.assertEqual(free, dict(found.free))
                amounts = dict.fromkeys(query.classes, 0)
                for group in query.groups:
                    for class_id, amount in group.amounts:
                        amounts[class_id] += amount
                for class_id, amount in amounts.items():
                    self.assertEqual(free[class_id] - fits * amount, found.lost[class_id])
                    self.assertGreaterEqual(found.lost[class_id], 0)
                    self.assertGreaterEqual(found.alone[class_id], fits)
                lossy += found.most is not None
        self.assertGreater(lossy, len(seeds(300)) // 3)


@ddt.ddt
class SentenceTest(base.BaseTestCase):
    """The class of which the largest part is lost, and the class that is missing."""

    @ddt.data(
        (
            'H1[V:8, M:100]\nH2[V:2, M:20]',
            'resources=V:2,M:10',
            '5 fit; by memory alone 12 would: 58 % of the free memory is unusable for it, mostly '
            'for lack of VCPU.',
        ),
        (
            'H1[V:3]\nH2[V:3]\nH3[V: total 5 used 9]',
            'resources=V:2',
            '2 fit; by VCPU alone 3 would: 33 % of the free VCPU is unusable for it, mostly in '
            'remainders that are too small for a claim.',
        ),
        # Hosts without the trait, and without an inventory of the other class, are no part of it.
        (
            'H1[V:2, D:90] {T1}\nH2[V:9, D:5]\nH3[D:50] {T1}',
            'resources=V:1,D:10&required=T1',
            '2 fit; by disk alone 9 would: 77 % of the free disk is unusable for it, mostly for '
            'lack of VCPU.',
        ),
        (
            'H1\n  N1[VF:9]\n  N2[VF:1]',
            'resources1=VF:1&resources2=VF:1&group_policy=isolate',
            '1 fit; by SRIOV_NET_VF alone 5 would: 80 % of the free SRIOV_NET_VF is unusable for '
            'it, mostly because of other conditions.',
        ),
        ('H1[V:4]\nH2[V:3]', 'resources=V:2', None),
        ('H1[M:4]', 'resources=V:2', None),
    )
    @ddt.unpack
    def test_sentence(self, drawing, text, sentence):
        world = worlds.World.of(drawing)
        query = world.parse(text)
        found = unused(query, world).named({id_: name for name, id_ in world.ids.classes.items()})
        fits = simulate(query, world).fits
        result = Headroom(text, '1.39', fits, fits, {}, found)
        self.assertEqual(sentence, render.lost_sentence(result))
        lines = render.text([result] * 2, report.TREE, {}, with_details=False).splitlines()
        self.assertEqual(f'Query 2: {sentence}' if sentence else lines[-1], lines[-1])

    def test_large_numbers(self):
        world = worlds.World.of('H1[V:9099, M:11300]')
        query = world.parse('resources=V:1,M:1')
        found = unused(query, world).named({id_: name for name, id_ in world.ids.classes.items()})
        result = Headroom('query', '1.39', 9099, 9099, {}, found)
        self.assertEqual(
            '9,099 fit; by memory alone 11,300 would: 19 % of the free memory is unusable for it, '
            'mostly for lack of VCPU.',
            render.lost_sentence(result),
        )
        self.assertEqual({'VCPU': 0, 'MEMORY_MB': 2201}, render.document([result])[0]['lost'])
