"""The declaration of each operation agrees with the code that serves it."""

import re

from placement import errors, microversion
from placement.handlers import root
from placement.microversion import MAX_VERSION, VERSIONS, Version
from placement.operations import OPERATIONS, responses
from placement.operations.operation import Change, Operation
from placement.policies import list_rules
from placement.tests.unit.api import ApiTestCase

ALL_VERSIONS = [microversion.of_text(text) for text in VERSIONS]
DECLARED = [
    (path, method, operation)
    for path, methods in OPERATIONS.items()
    for method, operation in methods.items()
]
GUARDED = [one for one in DECLARED if one[2].policy is not None]
# A description for each range of microversions.
EXAMPLE = Operation(
    method='GET',
    path='/',
    handler=root.home,
    title='Example',
    text='Always.',
    changes=(
        Change('since the beginning.', since=Version(1, 2)),
        Change('early.', until=Version(1, 9)),
        Change('for some time.', since=Version(1, 10), until=Version(1, 19)),
        Change('late.', since=Version(1, 20)),
    ),
    since=Version(1, 4),
    policy=None,
    successes=(),
)


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
                        self.assertEqual((403, operation.policy.name), (status, rule))
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
        declared = [(operation.policy.name, method, path) for path, method, operation in GUARDED]
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


class ResponsesTest(ApiTestCase):
    def test_responses(self):
        codes = set()
        for path, method, operation in DECLARED:
            for version in versions_of(operation):
                declared = responses.responses(path, operation, version)
                with self.subTest(f'{method} {path} {version}'):
                    self.assertLess(declared[0].status, 400)
                    statuses = [one.status for one in declared]
                    self.assertEqual(len(set(statuses)), len(statuses))
                    for one in declared:
                        codes.update(one.codes)
                        used = one.headers | one.optional_headers
                        self.assertLessEqual(used, responses.HEADERS.keys())
            for part in (*operation.successes, *operation.failures):
                self.assertRegex(part.when, r'^[A-Z`].*\.$')
                self.assertLessEqual(part.since, part.until, (method, path, part.when))
                self.assertGreaterEqual(part.until, operation.since, (method, path, part.when))
        self.assertEqual({value for name, value in vars(errors).items() if name.isupper()}, codes)


class DescriptionsTest(ApiTestCase):
    def test_a_description_states_the_range_of_each_change(self):
        self.assertEqual(
            'Always. Since the beginning. 1.4 to 1.9: early. 1.10 to 1.19: for some time. '
            'Changed in 1.20: late.',
            EXAMPLE.description,
        )
        for minor, last in ((9, 'Early.'), (10, 'For some time.'), (20, 'Late.')):
            description = EXAMPLE.description_at(Version(1, minor))
            self.assertEqual(f'Always. Since the beginning. {last}', description)

    def test_declared_descriptions(self):
        for _, _, operation in DECLARED:
            query = operation.query or ()
            names = {one.name for one in query}
            for one in (operation, *query):
                starts = [max(change.since, one.since) for change in one.changes]
                self.assertEqual(sorted(starts), starts, one.text)
                for change, start in zip(one.changes, starts, strict=True):
                    self.assertIn(change.since, ALL_VERSIONS)
                    self.assertLessEqual(start, change.until)
                for version in versions_of(one):
                    description = one.description_at(version)
                    self.assertRegex(description, r'^[A-Z`].*\.$')
                    self.assertIsNone(re.search(r'\b1\.\d', description), description)
                    # Descriptions mention only existing parameters.
                    existing = {two.name for two in query if two.since <= version}
                    words = set(re.findall(r'`(\w+)`', description))
                    self.assertEqual(set(), (words & names) - existing)
