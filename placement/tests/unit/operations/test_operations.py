"""The declaration of each operation agrees with the code that serves it.

The handlers run without a database: the check of the policy, which every handler makes before it
reads the body, the query string or the database, ends the request.
"""

from http import HTTPStatus
import importlib
import pkgutil
import re

import ddt
from oslotest import base

from placement import errors, exception, handler, microversion, operations
from placement.handlers import root
from placement.http import ENVIRON_CONTEXT, JSON
from placement.microversion import MAX_VERSION, MIN_VERSION, VERSIONS, Variants
from placement.operations import OPERATIONS, parameters, responses
from placement.operations.operation import Failure, Operation, Success
from placement.policies import list_rules
from placement.schemas import common
from placement.tests.unit import edge

ALL_VERSIONS = [microversion.of_text(text) for text in VERSIONS]
DECLARED = [
    (path, method, operation)
    for path, methods in OPERATIONS.items()
    for method, operation in methods.items()
]
GUARDED = [one for one in DECLARED if one[2].policy is not None]


def versions_of(operation):
    """Return the microversions that have an operation."""
    return [version for version in ALL_VERSIONS if version >= operation.since]


class _Refusing:
    """A request context that refuses every action and records it."""

    def __init__(self):
        self.actions = []

    def can(self, action, target=None):
        self.actions.append(action)
        raise exception.PolicyNotAuthorized(action)


class OperationTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.application = handler.PlacementHandler()

    def send(self, path, method, version, **more):
        """Send a request whose action is refused; return the status and the actions."""
        context = _Refusing()
        environ = edge.at(
            version,
            method=method,
            path=path.replace('{', '').replace('}', ''),
            **{ENVIRON_CONTEXT: context, 'CONTENT_TYPE': JSON, **more},
        )
        return edge.call(self.application, environ).status, context.actions

    def test_each_declaration_is_served(self):
        declared = {
            (operation.path, operation.method)
            for module_info in pkgutil.iter_modules(operations.__path__)
            for operation in vars(
                importlib.import_module(f'placement.operations.{module_info.name}')
            ).values()
            if isinstance(operation, Operation)
        }
        self.assertEqual(declared, {(path, method) for path, method, _ in DECLARED})
        for path, method, operation in DECLARED:
            self.assertIs(operation, handler.ROUTE_DECLARATIONS[path][method].operation)

    def test_only_the_version_document_has_no_policy_rule(self):
        unguarded = {operation.handler for _, _, operation in DECLARED if operation.policy is None}
        self.assertEqual({root.home}, unguarded)

    def test_the_first_microversion_and_the_policy_rule(self):
        for path, method, operation in GUARDED:
            for version in ALL_VERSIONS:
                status, actions = self.send(path, method, version)
                with self.subTest(f'{method} {path} {version}'):
                    if version >= operation.since:
                        self.assertEqual((403, [operation.policy.name]), (status, actions))
                    else:
                        self.assertIn(status, (404, 405))

    def test_the_operations_that_check_accept(self):
        for path, method, operation in GUARDED:
            status, _ = self.send(path, method, MAX_VERSION, HTTP_ACCEPT='text/plain')
            self.assertEqual(406 if operation.accepts else 403, status, (method, path))

    def test_the_microversions_in_which_the_operations_read_a_body(self):
        for path, method, operation in GUARDED:
            for version in versions_of(operation):
                status, _ = self.send(path, method, version, CONTENT_TYPE='text/plain')
                reads = operation.body_at(version) is not None
                self.assertEqual(415 if reads else 403, status, (method, path, version))

    def test_each_rule_of_the_policy_protects_the_declared_operations(self):
        documented = {
            (rule.name, one['method'], one['path'])
            for rule in list_rules()
            for one in getattr(rule, 'operations', ())
        }
        declared = {(operation.policy.name, method, path) for path, method, operation in GUARDED}
        self.assertEqual(documented, declared)

    def test_an_operation_writes_unless_its_method_is_get(self):
        for path, method, operation in DECLARED:
            self.assertEqual(method != 'GET', operation.writes, (method, path))

    def test_titles_are_unique(self):
        titles = [operation.title for path, _, operation in DECLARED if path]
        self.assertEqual(sorted(set(titles)), sorted(titles))


@ddt.ddt
class ResponsesTest(base.BaseTestCase):
    def test_every_operation_has_a_success_in_each_of_its_microversions(self):
        for path, method, operation in DECLARED:
            for version in versions_of(operation):
                first = responses.responses(path, operation, version)[0]
                self.assertLess(first.status, HTTPStatus.BAD_REQUEST, (method, path, version))

    def test_no_status_is_declared_twice(self):
        for path, _, operation in DECLARED:
            for version in versions_of(operation):
                statuses = [one.status for one in responses.responses(path, operation, version)]
                self.assertEqual(len(set(statuses)), len(statuses))

    def test_every_error_code_is_declared(self):
        declared = {
            code
            for path, _, operation in DECLARED
            for response in responses.responses(path, operation, MAX_VERSION)
            for code in response.codes
        }
        self.assertEqual(
            {value for name, value in vars(errors).items() if name.isupper()}, declared
        )

    def test_all_declared_headers_are_described(self):
        for path, _, operation in DECLARED:
            for response in responses.responses(path, operation, MAX_VERSION):
                used = response.headers | response.optional_headers
                self.assertLessEqual(used, responses.HEADERS.keys())

    def test_reasons_are_sentences(self):
        for _, _, operation in DECLARED:
            for reason in (*operation.successes, *operation.failures):
                self.assertIsInstance(reason, Success | Failure)
                self.assertRegex(reason.when, r'^[A-Z`].*\.$')

    @ddt.data(
        # A body only from 1.20 on, with Location in both forms.
        ('/resource_providers', 'POST', '1.19', 201, {'Location'}),
        ('/resource_providers', 'POST', '1.20', 200, {'Location', 'Last-Modified'}),
        # Last-Modified is new in 1.15, and a response without a body can have it.
        ('/traits/{name}', 'GET', '1.14', 204, set()),
        ('/traits/{name}', 'GET', '1.15', 204, {'Last-Modified'}),
        ('/resource_providers', 'GET', '1.14', 200, set()),
        ('/resource_providers', 'GET', '1.15', 200, {'Last-Modified'}),
        ('/traits/{name}', 'DELETE', '1.15', 204, set()),
    )
    @ddt.unpack
    def test_headers_of_successes(self, path, method, version, status, expected):
        operation = OPERATIONS[path][method]
        found = {
            response.status: response
            for response in responses.responses(path, operation, microversion.of_text(version))
        }
        self.assertEqual(expected, found[status].headers & {'Location', 'Last-Modified'})

    def test_the_parts_of_an_operation_lie_within_its_microversions(self):
        for path, method, operation in DECLARED:
            for part in (*operation.successes, *operation.failures):
                self.assertLessEqual(part.since, part.until, (method, path, part.when))
                self.assertGreaterEqual(part.until, operation.since, (method, path, part.when))


class ParametersTest(base.BaseTestCase):
    def test_a_form_applies_until_the_next_one(self):
        required = parameters.required(microversion.PROVIDERS_REQUIRED, 'Traits.')
        self.assertEqual(
            [((1, 18), (1, 21)), ((1, 22), (1, 38)), ((1, 39), MAX_VERSION)],
            [(window.since, window.until) for window in required.value.windows()],
        )

    def test_a_form_that_is_older_than_the_parameter_applies_from_the_beginning(self):
        member_of = parameters.member_of(microversion.GRANULAR_GROUPS, 'Aggregates.')
        self.assertEqual(microversion.GRANULAR_GROUPS, member_of.since)
        self.assertFalse(member_of.is_required(MAX_VERSION))
        self.assertTrue(member_of.is_repeatable(microversion.GRANULAR_GROUPS))

    def test_every_parameter_in_a_path_has_a_schema(self):
        for path, _, operation in DECLARED:
            names = re.findall(r'{(\w+)}', path)
            schemas = parameters.path_items(operation, MAX_VERSION)
            self.assertEqual(names, list(schemas), path)
            for schema in schemas.values():
                self.assertIn('description', schema)

    def test_the_last_value_of_each_parameter_is_validated(self):
        """The schemas follow from the parameters; a parser checks the values of some of them."""
        schemas = OPERATIONS['/resource_providers']['GET'].query_schemas()
        starts = [window.since for window in schemas.windows()]
        self.assertEqual([(1, 0), (1, 3), (1, 4), (1, 14), (1, 18)], starts[:5])
        self.assertEqual(
            {
                'type': 'object',
                'properties': {
                    'name': common.TEXT,
                    'uuid': parameters.UUID,
                    'member_of': common.TEXT,
                },
                'additionalProperties': False,
            },
            schemas.pick((1, 3)),
        )
        usages = OPERATIONS['/usages']['GET'].query_schemas()
        self.assertEqual(['project_id'], usages.pick(MAX_VERSION)['required'])
        # The handlers of the others parse the query string, or ignore it.
        parsed = {path for path, _, one in DECLARED if one.query and one.query_schemas() is None}
        self.assertEqual({'/allocation_candidates'}, parsed)
        self.assertIsNone(OPERATIONS['/reshaper']['POST'].query_schemas())

    def test_windows_of_variants_have_no_gap(self):
        variants = Variants({MIN_VERSION: 'a', microversion.TRAITS: 'b'})
        self.assertEqual(
            [((1, 0), (1, 5), 'a'), ((1, 6), MAX_VERSION, 'b')],
            [(one.since, one.until, one.variant) for one in variants.windows()],
        )
