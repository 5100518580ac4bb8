"""The page about clients names the clients and the releases that ``tox -e clients`` uses."""

from pathlib import Path
import re

from oslotest import base

from tools.clients import runs

ROOT = Path(runs.__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'user' / 'clients.rst'


class PageTest(base.BaseTestCase):
    def rows(self):
        """Return the releases of each row of the table, the newest one first, by client."""
        row = r'^([a-z-]+) +([\d.]+) +(?:\d+|Not counted) +([\d.]+) '
        return {name: releases for name, *releases in re.findall(row, PAGE.read_text(), re.M)}

    def test_clients(self):
        # tools/osc.py runs the functional tests of osc-placement.
        self.assertEqual({*runs.CLIENTS, 'osc-placement'}, set(self.rows()))

    def test_releases_of_the_oldest_environment(self):
        environments = (ROOT / 'tox.ini').read_text().split('[testenv:')
        (oldest,) = (one for one in environments if one.startswith('clients-oldest]'))
        pins = dict(re.findall(r'^    ([\w-]+)==([\d.]+)$', oldest, re.M))
        self.assertEqual(
            pins, {name: oldest for name, (_, oldest) in self.rows().items() if name in pins}
        )
        self.assertEqual(set(runs.CLIENTS), set(pins))
