"""The selection of tests for each database names existing tests, and omits none on SQLite."""

import pathlib

from oslotest import base

import placement
from tools import selection

FUNCTIONAL = pathlib.Path(placement.__file__).parent / 'tests' / 'functional'
PREFIX = 'placement.tests.functional.'
API = 'test_api.'


def module_of(name: str) -> tuple[pathlib.Path, list[str]]:
    """Return the package or module of a name, and the names of a class and a test in it."""
    path, parts = FUNCTIONAL, name.split('.')
    while parts and ((path / parts[0]).is_dir() or (path / f'{parts[0]}.py').is_file()):
        part = parts.pop(0)
        path = path / part if (path / part).is_dir() else path / f'{part}.py'
    return path, parts


class SelectionTest(base.BaseTestCase):
    def test_every_name_exists(self):
        names = (
            selection.NOT_ON_SERVERS,
            selection.NOT_ON_POSTGRESQL,
            selection.ON_MYSQLCLIENT,
            selection.ON_MYSQL,
        )
        for name in (name for table in names for name in table):
            with self.subTest(name):
                if name.startswith(API):
                    files = FUNCTIONAL.glob(f'gabbits/{name.removeprefix(API)}*.yaml')
                    self.assertTrue(list(files))
                    continue
                path, parts = module_of(name)
                if path == FUNCTIONAL:
                    self.assertTrue(list(FUNCTIONAL.glob(f'{name}*')))
                text = path.read_text() if path.is_file() else ''
                for keyword, part in zip(('class ', '    def '), parts, strict=False):
                    if path != FUNCTIONAL:
                        self.assertRegex(text, f'(?m)^{keyword}{part}')

    def test_each_test_runs_in_one_part(self):
        names = ('cmd.test_help.A.test', 'test_api.traits_1.test_request', 'races.test_reads.A.b')
        for database, number in (('sqlite', 6), ('mariadb', 5), ('postgresql', 5)):
            parts = [selection.named(name) for name in selection.parts(database)]
            self.assertEqual(number, len(parts))
            for name in names:
                self.assertEqual(1, sum(PREFIX + name in part for part in parts), (database, name))

    def test_each_test_runs_on_sqlite(self):
        modules = {
            module
            for name in selection.parts('sqlite')
            for module in selection.named(name).modules()
        }
        expected = {
            PREFIX + '.'.join(path.relative_to(FUNCTIONAL).with_suffix('').parts)
            for path in FUNCTIONAL.rglob('test_*.py')
        }
        never = tuple(f'{PREFIX}{name}.' for name in selection.NEVER)
        self.assertEqual({name for name in expected if not name.startswith(never)}, modules)

    def test_measured_parts_exist(self):
        for database, names in selection._MEASURED.items():
            for name in names:
                self.assertIn(f'{database}-{name}', selection.parts(database))
                self.assertTrue(selection.is_measured(f'{database}-{name}'))
        self.assertFalse(selection.is_measured('mariadb-mysqlclient'))

    def test_servers(self):
        for engine in ('mariadb', 'postgresql'):
            selected = selection.named(engine)
            self.assertIn(f'{PREFIX}a_new_module.Test.test', selected)
            self.assertIn(f'{PREFIX}cmd.test_preflight_databases.Test.test', selected)
            self.assertNotIn(f'{PREFIX}cmd.test_preflight.UsageTest.test', selected)
            self.assertIn(f'{PREFIX}cmd.test_preflight', selected.modules())
            self.assertNotIn(f'{PREFIX}cmd.test_explain', selected.modules())

    def test_api_tests_run_completely_on_mariadb(self):
        name = f'{PREFIX}test_api.routes_the_root.test_request'
        self.assertIn(name, selection.named('mariadb-others'))
        self.assertNotIn(name, selection.named('postgresql-others'))

    def test_mysqlclient(self):
        selected = selection.named('mariadb-mysqlclient')
        self.assertIn(f'{PREFIX}faults.test_tls.TlsTest.test', selected)
        self.assertNotIn(f'{PREFIX}a_new_module.Test.test', selected)
        self.assertIn(f'{PREFIX}mistakes.test_mistakes', selected.modules())

    def test_mysql(self):
        name = f'{PREFIX}cmd.test_audit.Test.test'
        self.assertEqual(['mysql-bounded'], selection.parts('mysql'))
        self.assertNotIn(name, selection.named('mysql-bounded'))
        self.assertIn(f'{PREFIX}races.test_claims.Test.test', selection.named('mysql-bounded'))
        self.assertIn(name, selection.named('mysql'))
        self.assertFalse(selection.is_measured('mysql-bounded'))

    def test_a_failed_import_is_in_each_selection(self):
        for name in selection.parts('sqlite'):
            failed = f'unittest.loader._FailedTest.{PREFIX}test_api'
            self.assertIn(failed, selection.named(name))
