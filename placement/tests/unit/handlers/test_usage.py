"""The policy check of GET /usages depends on the project of the request."""

import fixtures
from oslotest import base

from placement import handler
from placement.http import ENVIRON_CONTEXT
from placement.microversion import Version
from placement.tests.unit import edge


class Context:
    """A request context that allows everything and stores the target of the last check."""

    target = None

    def can(self, action, target=None):
        self.target = target
        return True


class TotalUsagesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.project_id = None
        self.useFixture(
            fixtures.MonkeyPatch('placement.objects.usage.by_project', self._by_project)
        )

    def _by_project(self, project_id, user_id=None):
        self.project_id = project_id
        return {}

    def get(self, query):
        context = Context()
        environ = edge.at(
            Version(1, 9), path='/usages', QUERY_STRING=query, **{ENVIRON_CONTEXT: context}
        )
        return edge.call(handler.PlacementHandler(), environ).status, context.target

    def test_policy_target_is_the_project_of_the_response(self):
        for query in ('project_id=a', 'project_id=b&project_id=a', 'project_id=b;project_id=a'):
            self.assertEqual((200, {'project_id': 'a'}), self.get(query))
            self.assertEqual('a', self.project_id)

    def test_policy_is_checked_before_the_query_is_validated(self):
        self.assertEqual((400, {}), self.get('colour=red'))
        self.assertIsNone(self.project_id)
