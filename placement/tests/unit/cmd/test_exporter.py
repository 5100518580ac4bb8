"""The option --cache of the command placement-manage exporter."""

import ddt
from oslotest import base

from placement.admin.failure import CannotProceedError
from placement.cmd import exporter


@ddt.ddt
class SecondsTest(base.BaseTestCase):
    @ddt.data(('0', 0.0), ('30', 30.0), ('0.5', 0.5), ('1e3', 1000.0))
    @ddt.unpack
    def test_valid(self, text, seconds):
        self.assertEqual(seconds, exporter._parse_seconds(text, '--cache'))

    @ddt.data('', '-1', '-0.1', 'nan', 'inf', '-inf', '1e999', '30s', '1,5', 'none')
    def test_malformed(self, text):
        error = self.assertRaises(CannotProceedError, exporter._parse_seconds, text, '--cache')
        self.assertIn(repr(text), str(error))
