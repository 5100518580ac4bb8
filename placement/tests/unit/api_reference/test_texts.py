"""What documents the operations: texts, responses, and the descriptions of request bodies."""

import re

from oslotest import base

from api_reference import responses
from api_reference.operations import OPERATIONS
from api_reference.terms import Change, Described
from api_reference.texts import TEXTS
from placement import errors, handlers, microversion
from placement.microversion import VERSIONS, Version

ALL_VERSIONS = [microversion.of_text(text) for text in VERSIONS]
# Each operation, with its method and path.
DOCUMENTED = [
    (f'{method} {path}', operation)
    for path, methods in OPERATIONS.items()
    for method, operation in methods.items()
    if path  # the empty path is the same as '/'
]
# A description for each range of microversions.
EXAMPLE = Described(
    text='Always.',
    changes=(
        Change('since the beginning.', since=Version(1, 2)),
        Change('early.', until=Version(1, 9)),
        Change('for some time.', since=Version(1, 10), until=Version(1, 19)),
        Change('late.', since=Version(1, 20)),
    ),
)


def versions_of(operation):
    """Return the microversions that have an operation."""
    return [version for version in ALL_VERSIONS if version >= operation.since]


def places(texts, place=''):
    """Yield the place of each description of a request body."""
    if isinstance(texts, str):
        texts = {'.': texts}
    for name, one in texts.items():
        if name == '.':
            yield place
        else:
            yield from places(one, f'{place}.{name}')


def described(schema, place=''):
    """Yield the place of each description in the schema of a request body."""
    if 'description' in schema:
        yield place
    for keyword, value in schema.items():
        if keyword == 'properties':
            for name, one in value.items():
                yield from described(one, f'{place}.{name}')
        elif isinstance(value, dict):
            one = next(iter(value.values())) if keyword == 'patternProperties' else value
            yield from described(one, f'{place}.*')


class TextsTest(base.BaseTestCase):
    def test_the_service_has_the_documented_operations(self):
        served = {
            f'{method} {path}'
            for path, methods in handlers.OPERATIONS.items()
            for method in methods
            if path
        }
        self.assertEqual(served, TEXTS.keys())

    def test_the_service_has_the_documented_query_parameters(self):
        for route, operation in DOCUMENTED:
            documented = TEXTS[route].get('query', {}).keys()
            names = {one.name + ('{suffix}' if one.suffix else '') for one in operation.query or ()}
            self.assertEqual(names, documented, route)

    def test_request_bodies_have_the_documented_fields(self):
        for route, operation in DOCUMENTED:
            windows = [] if operation.body is None else operation.body.windows()
            found = {one for window in windows for one in described(window.variant or {})}
            self.assertEqual(found, set(places(TEXTS[route].get('body', {}))), route)


class ResponsesTest(base.BaseTestCase):
    def test_responses(self):
        codes = set()
        for route, operation in DOCUMENTED:
            for version in versions_of(operation):
                declared = responses.responses(operation, version)
                with self.subTest(f'{route} {version}'):
                    self.assertLess(declared[0].status, 400)
                    statuses = [one.status for one in declared]
                    self.assertEqual(len(set(statuses)), len(statuses))
                    for one in declared:
                        codes.update(one.codes)
                        used = one.headers | one.optional_headers
                        self.assertLessEqual(used, responses.HEADERS.keys())
            for part in (*operation.successes, *operation.failures):
                self.assertRegex(part.when, r'^[A-Z`].*\.$')
                self.assertLessEqual(part.since, part.until, (route, part.when))
                self.assertGreaterEqual(part.until, operation.since, (route, part.when))
        self.assertEqual({value for name, value in vars(errors).items() if name.isupper()}, codes)


class DescriptionsTest(base.BaseTestCase):
    def test_a_description_states_the_range_of_each_change(self):
        self.assertEqual(
            'Always. Since the beginning. 1.4 to 1.9: early. 1.10 to 1.19: for some time. '
            'Changed in 1.20: late.',
            EXAMPLE.full_description(Version(1, 4)),
        )
        for minor, last in ((9, 'Early.'), (10, 'For some time.'), (20, 'Late.')):
            description = EXAMPLE.description_at(Version(1, minor))
            self.assertEqual(f'Always. Since the beginning. {last}', description)

    def test_declared_descriptions(self):
        for _, operation in DOCUMENTED:
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
