"""Commands ignore [placement] max_candidates_response_size, which cuts responses of the API."""

import json

from placement import db_api
from placement.tests import where, worlds
from placement.tests.functional import base, in_process
from placement.tests.worlds import rows

# Each tree has candidates with the second child, too.
WORLD = worlds.World.of("""
A
  A1[VGPU:3]
  A2[VGPU:3]
B
  B1[VGPU:2]
  B2[VGPU:2]
""")
QUERY = 'resources1=VGPU:1&resources2=VGPU:1&group_policy=isolate'


@where.only_on('sqlite', reason='The option is not part of a statement.')
class ResponseSizeTest(base.TestCase):
    def test_commands(self) -> None:
        rows.fill(db_api.get_placement_engine(), WORLD)
        for size in ('-1', '0'):
            found = []
            for command in ('explain', 'headroom'):
                options = {'max_candidates_response_size': size}
                done = in_process.run(command, QUERY, '--format', 'json', **options)
                found.append(json.loads(done.stdout))
            self.assertEqual({'trees': 2, 'more': False}, found[0]['candidates'])
            self.assertEqual(5, found[1][0]['fits'])
