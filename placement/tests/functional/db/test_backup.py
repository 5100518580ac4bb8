"""The commands of doc/source/admin/export-import.rst, while clients write."""

from collections.abc import Iterator, Sequence
import contextlib
import itertools
from pathlib import Path
from typing import Any
import uuid

import fixtures

from placement import deploy
from placement.db import engine
from placement.db.sqlalchemy import migration
from placement.tests import schema, where
from placement.tests.functional.db import base, runbook
from placement.tests.functional.faults import storm
from placement.tests.functional.races import audit, testcase
from placement.tests.functional.races.testcase import claim, inventories_of
from placement.tests.functional.web import commands

_PAGE = 'admin/export-import.rst'
_PROVIDERS = [f'{n}0000000-0000-4000-8000-00000000000a' for n in range(1, 4)]
_SECTIONS = {'mysql': 'MariaDB and MySQL', 'postgresql': 'PostgreSQL', 'sqlite': 'SQLite'}
_PROGRAMS = {
    'mysql': ('mariadb-dump', 'mariadb', 'gzip'),
    'postgresql': ('pg_dump', 'pg_restore', 'createdb', 'dropdb'),
    'sqlite': ('sqlite3',),
}
# The texts of the blocks that contain the name of the database, `placement`.
_BACKUP = {'mysql': ('--databases {}',), 'postgresql': ('.dump {}',), 'sqlite': ()}
_RESTORE = {
    'mysql': ('DROP DATABASE {}',),
    'postgresql': ('dropdb {}', 'template0 {}', '--dbname={}'),
    'sqlite': (),
}


@where.at_night('The backups take minutes.')
class BackupTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')
        self.config.set_override('auth_strategy', 'noauth2', group='api')
        self.application = deploy.loadapp(self.config)
        name = self.engine.dialect.name
        for program in _PROGRAMS[name]:
            commands.program(program)
        backup, restore = runbook.blocks(_PAGE, _SECTIONS[name])
        for program in runbook.MYSQL.values():
            self.assertIn(f'``{program}``', runbook.source_of(_PAGE))
        self.backup = self.with_own_database(backup, _BACKUP[name])
        self.restore = self.with_own_database(restore, _RESTORE[name])
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        self.shell = runbook.Shell(folder, self.database.url)
        # SQLite has no server, and the file of a test is not in the directory of the service.
        own = Path(self.engine.url.database or '').parent
        self.replaced = {'/var/lib/placement': str(own)} if name == 'sqlite' else {}
        for number, provider in enumerate(_PROVIDERS):
            self.make_provider(provider, f'h\N{LATIN SMALL LETTER O WITH DIAERESIS}st {number}')

    @contextlib.contextmanager
    def writing(self) -> Iterator[storm.Storm]:
        """Claim for pairs of consumers, and release every second pair.

        One request writes the allocations of both consumers of a pair from all providers.
        """
        numbers = itertools.count()
        with storm.Storm(lambda _, one: self.write(one, next(numbers)), 3).running() as writers:
            yield writers
        self.assertEqual({204}, set(writers.statuses))

    def write(self, consumer: str, number: int) -> int:
        bodies = {
            one: claim(dict.fromkeys(_PROVIDERS, 1), project=f'project {one}')
            for one in (consumer, other_of(consumer))
        }
        status = self.send('POST', '/allocations', bodies)
        if status == 204 and number % 2:
            status = self.send('POST', '/allocations', {one: claim({}, 1) for one in bodies})
        return status

    def send(self, method: str, path: str, body: Any = None) -> int:
        return testcase.send(self.application, method, path, body).status

    def with_own_database(self, block: str, texts: Sequence[str]) -> str:
        """Return a block of the page with the name of the database of this test."""
        for text in texts:
            old = text.format('placement')
            self.assertIn(old, block)
            block = block.replace(old, text.format(self.engine.url.database))
        return block

    def make_provider(self, provider: str, name: str) -> None:
        body = {'name': name, 'uuid': provider}
        self.assertEqual(200, self.send('POST', '/resource_providers', body))
        path = f'/resource_providers/{provider}/inventories'
        totals = inventories_of({'VCPU': 1_000_000}, 0)
        self.assertEqual(200, self.send('PUT', path, totals))

    def stop_and_restore(self) -> None:
        """Close the connections, as a stop of the service does, and restore the backup."""
        engine.get_pools().pool.dispose()
        self.shell.run(self.restore, self.replaced)

    def rows(self) -> dict[str, list[Any]]:
        with self.engine.connect() as conn:
            return {name: sorted(rows) for name, rows in audit.read(conn).items()}

    def test_backup_and_restore(self):
        self.check_backup_while_clients_write()
        self.assertEqual(['stop placement', 'start placement'], self.shell.systemctl())
        self.check_service_after_restore()
        self.check_backup_of_stopped_service()

    def check_backup_while_clients_write(self) -> None:
        """The backup contains all or nothing of each claim, and none of the later claims."""
        with self.writing() as writers:
            writers.wait_for(204, 20)
            self.shell.run(self.backup, self.replaced)
            writers.wait_for(204, 20)
        written = self.rows()
        self.stop_and_restore()

        self.assertEqual([], audit.problems(self.engine))
        restored = self.rows()
        consumers = {row.uuid for row in restored['consumers']}
        self.assertNotEqual(set(), consumers)
        self.assertLess(len(restored['projects']), len(written['projects']))
        for one in writers.consumers:
            self.assertEqual(one in consumers, other_of(one) in consumers)

    def check_service_after_restore(self) -> None:
        with self.writing() as writers:
            writers.wait_for(204, 20)
        self.assertEqual([], audit.problems(self.engine))

    def check_backup_of_stopped_service(self) -> None:
        """The restore returns the database to the state of the backup."""
        # A character outside the Basic Multilingual Plane, and some that SQL and shells interpret.
        self.make_provider(str(uuid.uuid4()), "host 'x' \\ $HOME \N{GRINNING FACE}")
        before = self.rows(), schema.describe(self.engine), migration.version()
        self.shell.run(self.backup, self.replaced)
        with self.writing() as writers:
            writers.wait_for(204, 20)
        self.assertNotEqual(before[0], self.rows())
        self.stop_and_restore()
        self.assertEqual(before, (self.rows(), schema.describe(self.engine), migration.version()))


def other_of(consumer: str) -> str:
    """Return the other consumer of a pair."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, consumer))
