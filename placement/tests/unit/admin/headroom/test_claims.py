"""The lines of the file of claims."""

import json

from oslotest import base

from placement import validation
from placement.admin.headroom import claims
from placement.admin.headroom.claims import Line, Owner
from placement.microversion import MAX_VERSION
from placement.schemas import allocation
from placement.tests import worlds
from placement.tests.properties import seeds
from placement.tests.unit.admin.headroom import clouds
from placement.tests.unit.admin.headroom.definition import simulate

OWNER = Owner(project='a project', user='a user')


def lines_of(case: clouds.Case) -> list[Line]:
    query = case.query
    steps = simulate(query, case.world).steps
    names = case.world.unbind(query)
    return list(claims.lines(steps, names, query, case.world.anchors, OWNER))


class LinesTest(base.BaseTestCase):
    def test_a_line_is_a_complete_body(self):
        world = worlds.World.of('CN[V:8] @A\n  N1[VGPU:5]\n  N2\nSS[D:100] {SHARE} @A')
        text = (
            'resources=V:2,D:10&resources_G=VGPU:1&in_tree_N=N2&same_subtree=_G,_N,_R'
            '&required_R=!AVX&in_tree_R=CN&group_policy=none'
        )
        lines = lines_of(clouds.Case(world, text, worlds.NEWEST))
        cn, n1, n2, ss = (host.uuid for host in world.hosts)
        first = json.loads(lines[0].text)
        self.assertCountEqual([cn, ss], first['mappings'].pop(''))
        mappings = first.pop('mappings')
        self.assertEqual([n1], mappings['_G'])
        self.assertIn(mappings['_N'], ([n1], [n2], [cn]))
        self.assertEqual(
            {
                'allocations': {
                    cn: {'resources': {'VCPU': 2}},
                    ss: {'resources': {'DISK_GB': 10}},
                    n1: {'resources': {'VGPU': 1}},
                },
                'project_id': 'a project',
                'user_id': 'a user',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
            first,
        )
        self.assertEqual(4, sum(line.times for line in lines))

    def test_lines_are_valid_for_the_api(self):
        checked = 0
        schema = allocation.PUT.pick(MAX_VERSION)
        for seed in seeds(200):
            case = clouds.case(seed)
            for line in lines_of(case):
                checked += 1
                self.assertTrue(line.text.endswith(b'}\n'))
                self.assertIsNone(validation.problem(schema, json.loads(line.text)), seed)
        self.assertGreater(checked, len(seeds(200)) // 2)


class FirstTest(base.BaseTestCase):
    """The maximum number of claims counts repetitions."""

    LINES = (Line(b'a', 2), Line(b'b', 3))

    def first(self, maximum: int) -> list[tuple[bytes, int]]:
        return [tuple(line) for line in claims.first(self.LINES, maximum)]

    def test_maximum(self):
        self.assertEqual([(b'a', 1)], self.first(1))
        self.assertEqual([(b'a', 2)], self.first(2))
        self.assertEqual([(b'a', 2), (b'b', 1)], self.first(3))
        self.assertEqual([(b'a', 2), (b'b', 3)], self.first(5))
        self.assertEqual([(b'a', 2), (b'b', 3)], self.first(9))

    def test_no_further_line_is_created(self):
        def fail():
            yield Line(b'a', 2)
            raise AssertionError

        self.assertEqual([Line(b'a', 2)], list(claims.first(fail(), 2)))
