"""The page about clients names the clients and the releases that ``tox -e clients`` uses."""

from pathlib import Path
import re

from oslotest import base

from tools.clients import runs

ROOT = Path(runs.__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'user' / 'clients.rst'


class PageTest(base.BaseTestCase):
    def rows(self):
        """Return the first four cells of each row of the table, by client."""
        found = re.findall(r'^   \* - ([a-z-]+)\n((?:     - .*\n){3})', PAGE.read_text(), re.M)
        return {name: re.findall('- (.*)', cells) for name, cells in found}

    def test_clients(self):
        # tools/osc.py runs the functional tests of osc-placement.
        self.assertEqual({*runs.CLIENTS, 'osc-placement'}, set(self.rows()))

    def test_releases_of_the_oldest_environment(self):
        environments = (ROOT / 'tox.ini').read_text().split('[testenv:')
        (oldest,) = (one for one in environments if one.startswith('clients-oldest]'))
        pins = dict(re.findall(r'^    ([\w-]+)==([\d.]+)$', oldest, re.M))
        self.assertEqual(
            pins, {name: cells[2] for name, cells in self.rows().items() if name in pins}
        )
        self.assertEqual(set(runs.CLIENTS), set(pins))
