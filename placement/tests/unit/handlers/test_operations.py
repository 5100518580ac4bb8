"""The service follows the declaration of each operation."""

import re

from placement import microversion
from placement.handlers import OPERATIONS
from placement.microversion import MAX_VERSION, VERSIONS
from placement.policies import list_rules
from placement.tests.unit.api import ApiTestCase

ALL_VERSIONS = [microversion.of_text(text) for text in VERSIONS]
DECLARED = [
    (path, method, operation)
    for path, methods in OPERATIONS.items()
    for method, operation in methods.items()
]
GUARDED = [one for one in DECLARED if one[2].rule is not None]


def versions_of(operation):
    """Return the microversions that have an operation."""
    return [version for version in ALL_VERSIONS if version >= operation.since]


class ServedTest(ApiTestCase):
    """The policy refuses each request, before the service reads the body and the query string."""

    def refused(self, path, method, version, **more):
        """Send a request as a user without a role; return the status and the refused rule."""
        path = path.replace('{', '').replace('}', '')
        more = {'CONTENT_TYPE': 'application/json', 'HTTP_X_ROLES': 'nothing', **more}
        response = self.send(method, path, version, **more)
        rule = re.search(r'does not allow (\S+) to be', response.body.decode())
        return response.status, rule and rule.group(1)

    def test_the_first_microversion_and_the_policy_rule(self):
        for path, method, operation in GUARDED:
            for version in ALL_VERSIONS:
                status, rule = self.refused(path, method, version)
                with self.subTest(f'{method} {path} {version}'):
                    if version >= operation.since:
                        self.assertEqual((403, operation.rule.name), (status, rule))
                    else:
                        self.assertIn(status, (404, 405))

    def test_the_operations_that_check_the_media_types(self):
        for path, method, operation in GUARDED:
            status, _ = self.refused(path, method, MAX_VERSION, HTTP_ACCEPT='text/plain')
            self.assertEqual(406 if operation.accepts else 403, status, (method, path))
            for version in versions_of(operation):
                status, _ = self.refused(path, method, version, CONTENT_TYPE='text/plain')
                reads = operation.body_at(version) is not None
                self.assertEqual(415 if reads else 403, status, (method, path, version))

    def test_each_rule_of_the_policy_protects_the_declared_operations(self):
        documented = [
            (rule.name, one['method'], one['path'])
            for rule in list_rules()
            for one in getattr(rule, 'operations', ())
        ]
        declared = [(operation.rule.name, method, path) for path, method, operation in GUARDED]
        self.assertEqual(sorted(documented), sorted(declared))
        self.assertEqual({'', '/'}, {one[0] for one in DECLARED} - {one[0] for one in GUARDED})

    def test_the_policy_target_is_the_project_of_the_response(self):
        for query, status in (
            ('project_id=a', 200),
            ('project_id=b&project_id=a', 200),
            ('project_id=b;project_id=a', 200),
            ('project_id=a&project_id=b', 403),
            # The policy is checked before the query is validated.
            ('colour=red', 403),
        ):
            user = {'HTTP_X_AUTH_TOKEN': 'user:a', 'HTTP_X_ROLES': 'reader', 'QUERY_STRING': query}
            if status == 200:
                self.assertIsNone(self.problem('GET', '/usages', **user))
            else:
                self.assertEqual(status, self.send('GET', '/usages', **user).status)
