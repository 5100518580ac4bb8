"""Whose usage is shown, and who is asked whether it may be."""

import fixtures
from oslotest import base

from placement import util
from placement.handlers import usage
from placement.microversion import Version
from placement.tests.unit import edge


class Context:
    """Remembers what was asked of the policy."""

    target = None

    def can(self, action, target=None):
        self.target = target
        return True


class TotalUsagesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.shown = None
        self.useFixture(
            fixtures.MonkeyPatch('placement.objects.usage.by_project', self._by_project)
        )

    def _by_project(self, project_id, user_id=None):
        self.shown = project_id
        return {}

    def ask(self, query):
        context = Context()
        environ = edge.at(Version(1, 9), QUERY_STRING=query, **{util.ENVIRON_CONTEXT: context})
        return edge.call(usage.get_total_usages, environ).status, context.target

    def test_the_policy_is_asked_about_the_project_that_is_shown(self):
        for query in ('project_id=a', 'project_id=b&project_id=a', 'project_id=b;project_id=a'):
            self.assertEqual((200, {'project_id': 'a'}), self.ask(query))
            self.assertEqual('a', self.shown)

    def test_the_policy_is_asked_before_the_query_is_judged(self):
        self.assertEqual((400, {}), self.ask('colour=red'))
        self.assertIsNone(self.shown)
