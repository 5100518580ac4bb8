"""Microversions: the list, variants, version handlers, and the header."""

from oslotest import base

# Importing `handler` imports all handlers of the service.
from placement import exception, handler, microversion
from placement.microversion import Version

LATEST = microversion.MAX_VERSION


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


class TextTest(base.BaseTestCase):
    def test_values(self):
        self.assertEqual(Version(1, 7), microversion.of_text('1.7'))
        self.assertEqual(LATEST, microversion.of_text('latest'))

    def test_an_empty_text_is_malformed(self):
        """In a header, the same text selects the oldest version."""
        self.assertRaises(exception.MalformedVersion, microversion.of_text, '')


class HeaderTest(base.BaseTestCase):
    """gabbi/microversion-negotiation.yaml tests the other forms of the header."""

    def test_very_long_numbers(self):
        for digits, error in (
            (50, exception.UnsupportedVersion),
            (5000, exception.MalformedVersion),
        ):
            text = f'placement 1.{"9" * digits}'
            self.assertRaises(error, microversion.parse_header, text)


class VariantsTest(base.BaseTestCase):
    variants = microversion.Variants({Version(1, 2): 'low', Version(1, 9): 'high'})

    def test_pick(self):
        for minor, variant in ((2, 'low'), (8, 'low'), (9, 'high'), (38, 'high')):
            self.assertEqual(variant, self.variants.pick(Version(1, minor)))

    def test_windows_have_no_gap(self):
        windows = [(one.since, one.until, one.variant) for one in self.variants.windows()]
        self.assertEqual([((1, 2), (1, 8), 'low'), ((1, 9), LATEST, 'high')], windows)

    def test_there_is_no_variant_before_the_first(self):
        self.assertRaises(KeyError, self.variants.pick, Version(1, 1))


class VersionHandlerTest(base.BaseTestCase):
    """The decorator `version_handler`, which is for code outside of this repository."""

    def test_the_operations_declare_their_microversions(self):
        self.assertTrue(handler.ROUTE_DECLARATIONS)
        served = [
            name
            for name in microversion.VERSIONED_METHODS
            if name.startswith('placement.handlers.')
        ]
        self.assertEqual([], served)
