"""The value of the option `--listen`."""

import ddt
from oslotest import base

from placement.admin.capacity_metrics import listen_address
from placement.admin.capacity_metrics.listen_address import ListenAddress
from placement.admin.failure import CannotProceedError


@ddt.ddt
class ParseTest(base.BaseTestCase):
    @ddt.data(
        ('127.0.0.1:9180', '127.0.0.1', 9180),
        ('[::1]:9180', '::1', 9180),
        ('[fe80::1%eth0]:1', 'fe80::1%eth0', 1),
        ('metrics.example.org:65535', 'metrics.example.org', 65535),
        ('localhost:0', 'localhost', 0),
    )
    @ddt.unpack
    def test_valid(self, text, host, port):
        address = listen_address.parse(text)
        self.assertEqual(ListenAddress(host, port), address)
        self.assertEqual(text, str(address))

    @ddt.data(
        '',
        '9180',
        ':9180',
        '127.0.0.1',
        '127.0.0.1:',
        '127.0.0.1:http',
        '127.0.0.1:65536',
        '127.0.0.1:-1',
        '127.0.0.1:9180 ',
        '127.0.0.1:9180\n',
        '127.0.0.1:९',
        '::1:9180',
        '[]:9180',
        '[::1]',
        'http://127.0.0.1:9180',
    )
    def test_malformed(self, text):
        error = self.assertRaises(CannotProceedError, listen_address.parse, text)
        self.assertIn(repr(text), str(error))
        self.assertIn('127.0.0.1:9180', str(error))
