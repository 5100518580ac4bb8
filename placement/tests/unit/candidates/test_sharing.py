"""Which sharing providers serve which trees."""

from oslotest import base

from placement.candidates import model, sharing
from placement.tests import worlds

WORLD = worlds.World.of("""
CN1[V:8] @A
CN2[V:8] @A,B
R[M:8]
  SA[D:100] {SHARE} @A
SB[D:100, IPV4_ADDRESS:10] {SHARE T1} @B,C
""")
CN1, CN2, R, SA, SB = WORLD.providers
A, B, C = (WORLD.ids.aggregates[worlds.uuid_of(name)] for name in 'ABC')


class SharingProvidersTest(base.BaseTestCase):
    """The registry of the sharing providers that were read for a request."""

    def test_aggregates_are_missing_until_they_are_added(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        self.assertEqual({A, B}, registry.require([CN2]))
        registry.add([R, SA], frozenset({A}))
        self.assertEqual({B}, registry.require([CN2]))

    def test_no_aggregate_is_missing_after_all_providers_are_added(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        registry.add_all([R, SA])
        self.assertEqual(frozenset(), registry.require([CN2, SB]))

    def test_sharing_providers_of_a_tree(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        self.assertEqual((), registry.of_tree(CN2.id, [CN2]))
        registry.add([CN1, SB, R, SA], frozenset({A, B}))
        self.assertEqual((SA,), registry.of_tree(CN1.id, [CN1]))
        self.assertEqual((SA, SB), registry.of_tree(CN2.id, [CN2]))
        self.assertEqual({SA.id, SB.id}, registry.ids)
        self.assertEqual({R.id: [R, SA], SB.id: [SB]}, registry.trees)

    def test_a_tree_is_added_once(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        for aggregate in (A, B):
            registry.add([R, SA], frozenset({aggregate}))
        self.assertEqual((SA,), registry.of_tree(CN2.id, [CN2]))
        self.assertEqual({R.id: [R, SA]}, registry.trees)

    def test_no_sharing_provider_exists(self):
        registry = sharing.SharingProviders(None)
        self.assertEqual(frozenset(), registry.require([CN2]))
        registry.add([CN2])
        self.assertEqual((), registry.of_tree(CN1.id, [CN1]))

    def test_a_tree_is_not_served_by_its_own_sharing_providers(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        registry.add_all([R, SA, SB])
        self.assertEqual((), registry.of_tree(R.id, [R, SA]))

    def test_later_providers_are_used(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        registry.add([R, SA], frozenset({A}))
        self.assertEqual((SA,), registry.of_tree(CN1.id, [CN1]))
        registry.add([SB], frozenset({B}))
        self.assertEqual((SA, SB), registry.of_tree(CN2.id, [CN2]))

    def test_trees_of_nested_sharing_providers(self):
        registry = sharing.SharingProviders(WORLD.sharing_id)
        anchors = [
            WORLD.anchors[0]._replace(sharing_providers=(SA,), sharing_trees=()),
            WORLD.anchors[1]._replace(sharing_providers=(SA, SB), sharing_trees=()),
        ]
        registry.add_all([R, SA, SB])
        self.assertEqual(
            [(R, SA), (R, SA)], [anchor.sharing_trees for anchor in registry.with_trees(anchors)]
        )


class SharingAggregatesTest(base.BaseTestCase):
    """The aggregates of the sharing providers that can serve a query."""

    def test_aggregates_of_able_providers(self):
        query = WORLD.parse('resources=D:1,IPV4_ADDRESS:1&required=T1')
        disk, address = slots = model.slots_of(query)
        able = sharing.able_providers([SA, SB], slots)
        self.assertEqual({disk: [SA, SB], address: [SB]}, able)
        aggregates = sharing.sharing_aggregates(able, query)
        self.assertEqual({disk: {A, B, C}, address: {B, C}}, aggregates.slots)
        self.assertEqual({frozenset({WORLD.ids.traits['CUSTOM_T1']}): {B, C}}, aggregates.traits)
