"""The checks of ``tox -e clients``, and the page with its results."""

from pathlib import Path
import re
from unittest import mock

import fixtures
from oslotest import base

from tools.clients import gophercloud, runs
from tools.clients.calls import Calls, MismatchError

ROOT = Path(runs.__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'user' / 'clients.rst'


class Client:
    attribute = 'no function'

    def read(self):
        return 'a response'

    def write(self):
        """Send a request."""

    def _send(self):
        """Send any request."""


class CallsTest(base.BaseTestCase):
    def test_result(self):
        self.assertEqual('a response', Calls(Client()).read())

    def test_missing_call(self):
        calls = Calls(Client())
        calls.read()
        error = self.assertRaises(MismatchError, calls.require_all)
        self.assertEqual("these functions were not called: ['write']", str(error))

    def test_excluded(self):
        calls = Calls(Client())
        calls.read()
        calls.require_all(excluded=['write'])

    def test_looking_is_not_calling(self):
        calls = Calls(Client())
        self.assertTrue(calls.has('read'))
        self.assertFalse(calls.has('delete'))
        self.assertRaises(MismatchError, calls.require_all)


class GophercloudTest(base.BaseTestCase):
    def test_missing_compiler(self):
        with mock.patch('shutil.which', return_value=None):
            self.assertIsNone(runs.installed('gophercloud'))
        self.assertIn('golang-go', runs.remedy('gophercloud'))

    def test_missing_call(self):
        sources = Path(self.useFixture(fixtures.TempDir()).path)
        package = sources / 'resourceproviders'
        package.mkdir()
        (package / 'requests.go').write_text('func List(c int) {\n}\nfunc Delete(c int) {\n}\n')
        with mock.patch.object(gophercloud, 'SOURCES', sources):
            error = self.assertRaises(MismatchError, gophercloud.require_all)
        self.assertEqual(
            "these functions were not called: ['resourceproviders.Delete']", str(error)
        )


class PageTest(base.BaseTestCase):
    def rows(self):
        """Return the first four cells of each row of the table, by client."""
        found = re.findall(r'^   \* - ([a-z-]+)\n((?:     - .*\n){3})', PAGE.read_text(), re.M)
        return {name: re.findall('- (.*)', cells) for name, cells in found}

    def test_clients(self):
        self.assertEqual(list(runs.CLIENTS), list(self.rows()))

    def test_releases_of_the_oldest_environment(self):
        environments = (ROOT / 'tox.ini').read_text().split('[testenv:')
        (oldest,) = (one for one in environments if one.startswith('clients-oldest]'))
        pins = dict(re.findall(r'^    ([\w-]+)==([\d.]+)$', oldest, re.M))
        client = pins.pop('python-openstackclient')
        self.assertIn(f'python-openstackclient {client}', PAGE.read_text())
        self.assertEqual(
            pins, {name: cells[2] for name, cells in self.rows().items() if name in pins}
        )
        # gophercloud is a package of Debian.
        self.assertEqual(set(runs.CLIENTS), {*pins, 'gophercloud'})
