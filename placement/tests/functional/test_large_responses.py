"""A large response is not in memory as a whole while it is sent."""

import json

import fixtures

from placement import db_api, deploy
from placement.tests import where, worlds
from placement.tests.functional import base
from placement.tests.unit import edge
from placement.tests.worlds import rows


@where.only_on('sqlite', reason='The response is rendered after the statements.')
class LargeResponseTest(base.TestCase):
    def test_chunks(self):
        world = worlds.World.of('\n'.join(f'CN{number}[V:8, M:9]' for number in range(300)))
        rows.fill(db_api.get_placement_engine(), world)
        environ = edge.environ(
            path='/allocation_candidates',
            QUERY_STRING='resources=VCPU:1,MEMORY_MB:1',
            HTTP_X_AUTH_TOKEN='admin',
        )
        environ['HTTP_OPENSTACK_API_VERSION'] = 'placement latest'
        application = deploy.build(self.service.conf_fixture.conf)
        started = []
        for limit, is_whole in ((2**23, True), (1000, False)):
            self.useFixture(fixtures.MonkeyPatch('placement.http.reply._LARGEST_IN_MEMORY', limit))
            response = application(dict(environ), lambda *args: started.append(args))
            chunks = list(response)
            response.close()
            length = dict(started.pop()[1])['Content-Length']
            self.assertEqual(int(length), sum(map(len, chunks)))
            self.assertEqual(300, len(json.loads(b''.join(chunks))['allocation_requests']))
            self.assertEqual(is_whole, len(chunks) == 1)
            # No chunk but the last one is small.
            for chunk in chunks[:-1]:
                self.assertLess(2**16 - 1, len(chunk))
                self.assertLess(len(chunk), 2**18)
