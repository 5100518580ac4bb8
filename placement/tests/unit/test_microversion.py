"""Microversions: the list, variants, version handlers, and the header."""

import itertools

from oslotest import base

# Importing `handler` imports all handlers of the service.
from placement import exception, handler, microversion, negotiation
from placement.microversion import Version
from placement.tests.unit import edge

# Increase this number if you add a use of version_handler. The operations of the service declare
# their microversions instead (`placement.operations`); the decorator is for code outside of this
# repository.
TOTAL_VERSIONED_METHODS = 0


class VersionsTest(base.BaseTestCase):
    def test_there_is_no_gap(self):
        expected = [f'1.{minor}' for minor in range(len(microversion.VERSIONS))]
        self.assertEqual(expected, microversion.VERSIONS)

    def test_every_version_but_the_first_has_one_name(self):
        named = [
            value
            for name, value in vars(microversion).items()
            if isinstance(value, Version) and name not in ('MIN_VERSION', 'MAX_VERSION')
        ]
        self.assertEqual(microversion.VERSIONS[1:], [str(version) for version in sorted(named)])

    def test_versions_compare_as_numbers(self):
        self.assertLess(Version(1, 9), Version(1, 10))
        self.assertGreaterEqual(Version(1, 28), microversion.CONSUMER_GENERATION)
        self.assertEqual((1, 28), microversion.CONSUMER_GENERATION)

    def test_matches(self):
        version = Version(1, 5)
        self.assertTrue(version.matches())
        self.assertTrue(version.matches(Version(1, 5), Version(1, 5)))
        self.assertFalse(version.matches(Version(1, 6)))
        self.assertFalse(version.matches(max_version=Version(1, 4)))

    def test_before(self):
        self.assertEqual(Version(1, 6), microversion.RESOURCE_CLASS_PUT_CREATES.before())


class TextTest(base.BaseTestCase):
    def test_values(self):
        self.assertEqual(Version(1, 7), microversion.of_text('1.7'))
        self.assertEqual(microversion.MAX_VERSION, microversion.of_text('latest'))

    def test_an_empty_text_is_malformed(self):
        """In a header, the same text selects the oldest version."""
        self.assertRaises(microversion.MalformedVersion, microversion.of_text, '')


class HeaderTest(base.BaseTestCase):
    def test_values(self):
        for header, expected in {
            'placement 1.7': (1, 7),
            'placement   1.7 ': (1, 7),
            'PlaceMent 1.7': (1, 7),
            'placement 1.07': (1, 7),
            'placement 01.7': (1, 7),
            'placement latest': microversion.MAX_VERSION,
            'placement 1.5, compute 2.1, placement 1.7': (1, 7),
            'placement 1.7, compute 2.1': (1, 7),
            'compute 2.1': (1, 0),
            'placement': (1, 0),
            '1.7': (1, 0),
            '': (1, 0),
        }.items():
            self.assertEqual(expected, microversion.parse_header(header), header)

    def test_unsupported(self):
        for text in ('1.99', '2.0', '0.9', '-1.5', '1.' + '9' * 50):
            self.assertRaises(
                microversion.UnsupportedVersion, microversion.parse_header, f'placement {text}'
            )

    def test_malformed(self):
        for text in ('1', '1.x', '1.5.1', 'LATEST', 'x', '1.' + '9' * 5000):
            self.assertRaises(
                microversion.MalformedVersion, microversion.parse_header, f'placement {text}'
            )


class VariantsTest(base.BaseTestCase):
    variants = microversion.Variants({Version(1, 2): 'low', Version(1, 9): 'high'})

    def test_pick(self):
        for minor, variant in ((2, 'low'), (8, 'low'), (9, 'high'), (38, 'high')):
            self.assertEqual(variant, self.variants.pick(Version(1, minor)))

    def test_there_is_no_variant_before_the_first(self):
        self.assertRaises(KeyError, self.variants.pick, Version(1, 1))


class VersionHandlerTest(base.BaseTestCase):
    def test_total(self):
        self.assertTrue(handler.ROUTE_DECLARATIONS)
        served = {
            name: implementations
            for name, implementations in microversion.VERSIONED_METHODS.items()
            if name.startswith('placement.handlers.')
        }
        self.assertEqual(TOTAL_VERSIONED_METHODS, sum(map(len, served.values())))

    def test_no_two_implementations_serve_the_same_version(self):
        for name, implementations in microversion.VERSIONED_METHODS.items():
            for one, other in itertools.combinations(implementations, 2):
                apart = one.max_version < other.min_version or other.max_version < one.min_version
                self.assertTrue(apart, name)

    def test_the_implementation_for_the_version_is_called(self):
        @microversion.version_handler(Version(1, 2), Version(1, 3))
        def handle(req):
            return 'old'

        @microversion.version_handler(Version(1, 4))
        def handle(req):  # noqa: F811  # version_handler combines functions of one name
            return 'new'

        class Request:
            def __init__(self, minor):
                self.environ = {
                    'REQUEST_METHOD': 'PUT',
                    microversion.ENVIRON_KEY: Version(1, minor),
                }

        self.assertEqual('old', handle(Request(2)))
        self.assertEqual('old', handle(Request(3)))
        self.assertEqual('new', handle(Request(38)))
        self.assertRaises(exception.RouteNotFound, handle, Request(1))

        @microversion.version_handler(Version(1, 4), path_is_older=True)
        def handle_new_method(req):
            return 'new'

        error = self.assertRaises(exception.MethodNotAllowed, handle_new_method, Request(3))
        self.assertIn('PUT', str(error))


class MiddlewareTest(base.BaseTestCase):
    application = negotiation.MicroversionMiddleware(edge.ok)

    def send(self, header):
        return edge.call(self.application, edge.environ(HTTP_OPENSTACK_API_VERSION=header))

    def test_the_response_names_the_version(self):
        response = self.send('placement latest')
        self.assertEqual(
            f'placement {microversion.MAX_VERSION}', response.headers['openstack-api-version']
        )
        self.assertEqual('openstack-api-version', response.headers['vary'])

    def test_no_header(self):
        response = edge.call(self.application, edge.environ())
        self.assertEqual('placement 1.0', response.headers['openstack-api-version'])

    def test_unsupported(self):
        response = self.send('placement 1.99')
        self.assertEqual(406, response.status)
        self.assertEqual(microversion.VERSIONS[-1], response.error['max_version'])
        self.assertEqual('1.0', response.error['min_version'])
        self.assertNotIn('openstack-api-version', response.headers)

    def test_malformed(self):
        response = self.send('placement x')
        self.assertEqual(400, response.status)
        self.assertNotIn('max_version', response.error)
