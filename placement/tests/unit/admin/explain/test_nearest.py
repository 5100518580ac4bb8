"""The reasons why conditions fail in a tree."""

from oslotest import base

from placement.admin.explain import conditions, nearest
from placement.tests import worlds

# Two nodes are equally close to each amount.
WORLD = worlds.World.of("""
host
  node2[V: total 8 max_unit 4]
  node1[V: total 8 max_unit 4]
  node3[V: total 6 max_unit 2]
""")


class FactTest(base.BaseTestCase):
    def test_the_first_of_the_closest_providers_by_name(self):
        (anchor,) = WORLD.anchors
        names = {provider.id: WORLD.names[provider.uuid] for provider in anchor.tree}
        pairs = [('resources', 'VCPU:5')]
        query = WORLD.unbind(WORLD.parse('resources=V:5'))
        (condition,) = conditions.conditions_of(pairs, worlds.NEWEST, query)
        for tree in (anchor.tree, anchor.tree[::-1]):
            fact = nearest.fact(condition, WORLD.ids.classes, anchor._replace(tree=tree), names)
            self.assertEqual('VCPU max_unit 4 on node1, 5 requested', fact)
