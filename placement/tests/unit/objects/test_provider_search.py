"""The statements of GET /resource_providers."""

from unittest import mock

from oslotest import base

from placement.objects import provider_search


class StatementTest(base.BaseTestCase):
    def test_requests_by_name_execute_the_same_statement(self):
        """SQLAlchemy computes the cache key of each statement once; a copy is a new statement."""
        conn = mock.Mock()
        conn.execute.return_value.all.return_value = []
        for name in ('a', 'b'):
            filters = provider_search.Filters(name=name)
            self.assertEqual([], provider_search.ids_of_matching(conn, filters))
        first, second = (call.args[0] for call in conn.execute.call_args_list)
        self.assertIs(first, second)
