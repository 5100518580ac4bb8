"""The selection of tests for each database names existing tests, and omits none on SQLite."""

import pathlib
import re

from oslotest import base

import placement
from tools import selection

FUNCTIONAL = pathlib.Path(placement.__file__).parent / 'tests' / 'functional'
PREFIX = 'placement.tests.functional.'


def module_of(name: str) -> tuple[pathlib.Path, list[str]]:
    """Return the package or module of a name, and the names of a class and a test in it."""
    path, parts = FUNCTIONAL, name.split('.')
    while parts and ((path / parts[0]).is_dir() or (path / f'{parts[0]}.py').is_file()):
        part = parts.pop(0)
        path = path / part if (path / part).is_dir() else path / f'{part}.py'
    return path, parts


class SelectionTest(base.BaseTestCase):
    def test_every_name_exists(self):
        for name in (*selection.NOT_ON_SERVERS, *selection.ON_MYSQLCLIENT):
            with self.subTest(name):
                path, parts = module_of(name)
                self.assertNotEqual(FUNCTIONAL, path)
                text = path.read_text() if path.is_file() else ''
                for keyword, part in zip(('class ', '    def '), parts, strict=False):
                    self.assertRegex(text, f'(?m)^{keyword}{part}')

    def test_each_test_runs_in_one_part(self):
        names = ('cmd.test_audit.A.test', 'test_api.traits_1', 'races.test_reads.A.test')
        for database, number in (('sqlite', 3), ('mariadb', 3), ('postgresql', 3)):
            parts = selection.parts(database).values()
            self.assertEqual(number, len(parts))
            for name in names:
                found = [part for part in parts if re.search(part, PREFIX + name)]
                self.assertEqual(1, len(found), (database, name))

    def test_servers(self):
        for engine in ('mariadb', 'postgresql'):
            pattern = selection.pattern(engine)
            self.assertRegex(f'{PREFIX}a_new_module.Test.test', pattern)
            self.assertRegex(f'{PREFIX}cmd.test_preflight_databases.Test.test', pattern)
            self.assertNotRegex(f'{PREFIX}cmd.test_preflight.UsageTest.test', pattern)

    def test_mysqlclient(self):
        pattern = selection.pattern('mariadb-mysqlclient')
        self.assertRegex(f'{PREFIX}faults.test_tls.TlsTest.test', pattern)
        self.assertNotRegex(f'{PREFIX}a_new_module.Test.test', pattern)
