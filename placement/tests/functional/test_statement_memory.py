"""Repeated conditions in a request compile no new statements."""

import os_traits

from placement import db_api
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.worlds import rows

TRAITS = os_traits.get_traits()


class StatementMemoryTest(base.TestCase):
    def test_a_repeated_condition_compiles_no_new_statement(self):
        """Unit tests of `db` check how much memory the compiled statements of an engine use."""
        engine = db_api.get_placement_engine()
        cache = engine.get_execution_options()['compiled_cache']
        rows.fill(engine, worlds.World.of('CN[V:8] {T1} @A'))
        first, second, aggregate = 'CUSTOM_T1', TRAITS[0], worlds.uuid_of('A')
        for path in ('/allocation_candidates?resources=VCPU:1', '/resource_providers?'):
            for condition in (
                f'&required={first}',
                f'&required=in:{first},{second}',
                f'&required={first},!{second}',
                f'&member_of={aggregate}',
                f'&member_of=in:{aggregate},{worlds.uuid_of("B")}',
            ):
                for _ in range(3):
                    once = self.send_ok('GET', path + condition)
                cached = set(cache)
                self.assertLess(0, len(cached))
                for count in range(2, 12):
                    self.assertEqual(once, self.send_ok('GET', path + condition * count))
                self.assertEqual(cached, set(cache), condition)
