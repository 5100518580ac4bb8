"""Commands ignore [placement] max_candidates_response_size, which cuts responses of the API."""

import json
from typing import Any

from placement.candidates import search
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import sync
from placement.tests import worlds
from placement.tests.functional.cmd import base
from placement.tests.worlds import rows as world_rows

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


class ResponseSizeTest(base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        models.metadata.create_all(self.engine)
        sync.sync_resource_classes()
        world_rows.fill(self.engine, WORLD)

    def candidates(self, size: int) -> int:
        """Return the number of candidates in a response of the API."""
        query, options = WORLD.unbind(WORLD.parse(QUERY)), search.Options(max_size=size)
        with engine.snapshot() as conn:
            return len(search.search_with(conn, query, options).candidates)

    def result(self, command: str, **options: str) -> Any:
        """Return the document that a command prints."""
        done = self.run_command(command, QUERY, '--format', 'json', **options)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        return json.loads(done.stdout)

    def assertIgnored(self, command: str) -> Any:
        """The command prints the same with a limit that cuts a response; return the document."""
        self.assertEqual((4, 2), (self.candidates(-1), self.candidates(0)))
        unlimited = self.result(command, max_candidates_response_size='-1')
        self.assertEqual(unlimited, self.result(command, max_candidates_response_size='0'))
        return unlimited

    def test_explain(self) -> None:
        self.assertEqual({'trees': 2, 'more': False}, self.assertIgnored('explain')['candidates'])

    def test_headroom(self) -> None:
        (document,) = self.assertIgnored('headroom')
        self.assertEqual((5, 5), (document['fits'], document['at_most']))
