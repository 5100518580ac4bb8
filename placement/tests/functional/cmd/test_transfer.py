"""The commands `placement-manage export` and `placement-manage import`."""

import contextlib
import gzip
import hashlib
import hmac
import os
from pathlib import Path
import random
import resource
import signal
import stat
import subprocess
from typing import Any
from unittest import mock

import fixtures
import sqlalchemy as sa

from placement.cmd import program
from placement.db.sqlalchemy import models
from placement.tests import servers, where
from placement.tests.functional import programs
from placement.tests.functional.admin.transfer import base as transfer
from placement.tests.functional.cmd import base
from placement.tests.properties import seeds
from placement.tests.unit.admin.transfer import documents
from placement.tests.waiting import LONGEST

_SEED = 12
INCOMPLETE = '00000000-0000-0000-0000-000000000000'
# A pipe contains at most 64 KiB, and the buffer of the process contains 8 KiB.
_BUFFERS = 72 * 1024


class TransferCase(transfer.TestCase, base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)

    def file(self, data: bytes, name: str = 'cloud.jsonl') -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def refused(self, text: str, *arguments: str) -> None:
        """A command is refused in one line."""
        done = self.run_with_status(2, *arguments)
        self.assertEqual('', done.stdout)
        self.assertTrue(done.stderr.startswith('Error: '), done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(1, done.stderr.count('\n'), done.stderr)


def large_file() -> bytes:
    """A file that is larger than all buffers between two processes."""
    uuids = (f'{n:08}-0000-4000-8000-000000000000' for n in range(2500))
    return documents.file_of(documents.row('aggregate', one) for one in uuids)


@where.not_on('postgresql', reason='The tests of the functions run on each database.')
class CommandTest(TransferCase):
    def test_files(self):
        verdict = '22 rows are {}, with 3 providers, 2 consumers, and 3 allocations.\n'
        done = self.run_with_status(0, 'import', self.file(transfer.EXAMPLE))
        self.assertEqual(('', verdict.format('imported')), (done.stdout, done.stderr))
        path = self.folder / 'a copy.jsonl.gz'
        contents = []
        for _ in range(2):
            done = self.run_with_status(0, 'export', str(path))
            following = f"Next: placement-manage import '{path}'\n"
            self.assertEqual(
                ('', verdict.format('exported') + following), (done.stdout, done.stderr)
            )
            contents.append(path.read_bytes())
        self.assertEqual(*contents, 'equal exports are equal files')
        self.assertEqual(transfer.EXAMPLE, gzip.decompress(contents[0]))
        servers.delete_all_rows(self.engine)
        self.run_with_status(0, 'import', str(path))
        done = self.run_program('export', '-')
        self.assertEqual(transfer.EXAMPLE.decode(), done.stdout)

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_refusals(self):
        data = transfer.EXAMPLE
        for text, *arguments in (
            ('Line 23: The file is cut off; ', 'import', self.file(data[:-1], 'cut')),
            ('Line 1: The file is not compressed', 'import', self.file(data, 'a.gz')),
            ('missing cannot be used: ', 'import', str(self.folder / 'missing')),
            ('/dev/full cannot be written: No space left', 'export', '/dev/full'),
            ('missing/a cannot be written: No such', 'export', f'{self.folder}/missing/a'),
            ('without --anonymize', 'export', '--key-file', self.file(b'k', 'key')),
        ):
            self.refused(text, *arguments)
        for text, key in (
            ('empty contains 0 bytes, but a key has at least 16.', self.file(b'', 'empty')),
            ('short contains 15 bytes, but a', self.file(b'15 bytes, no mo\n', 'short')),
            ('none cannot be used: No such file or directory.', f'{self.folder}/none'),
            ('cannot be used: ', ''),
        ):
            self.refused(text, 'export', '--anonymize', '--key-file', key)
        self.assertEqual({}, self.counts())

    def test_force(self):
        self.load(transfer.EXAMPLE)
        other = self.file(documents.file_of(documents.random_rows(_SEED)))
        self.refused('--force', 'import', other)
        self.run_with_status(0, 'import', '--force', other)

    def test_usage_above_the_capacity_is_reported(self):
        data, _ = documents.edited(documents.change('allocation', 2, used=93))
        done = self.run_with_status(0, 'import', self.file(data))
        self.assertEqual(
            [
                '1 inventory has more usage than capacity, as in the exported database. This is '
                'legal.',
                'Next: placement-manage audit --only over-capacity',
            ],
            done.stderr.splitlines()[1:],
        )

    def test_a_reader_that_closes_the_pipe(self):
        self.load(large_file())
        process = self.start('export', stdout=programs.PIPE)
        process.stdout.read(100)
        process.stdout.close()
        errors = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual((program.CLOSED, ''), (process.wait(LONGEST), errors))


@where.only_on('sqlite', reason='The database does not matter.')
class FilesTest(TransferCase):
    """The file of an export is complete or does not exist, and only its owner can read it."""

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(os.umask, os.umask(0))
        self.path = self.folder / 'cloud.jsonl'

    def export_to(self, path: Path) -> None:
        self.run_with_status(0, 'export', str(path))

    def test_a_disk_that_becomes_full(self):
        """The system writes only a part of the last lines, and then no more."""
        self.load(transfer.EXAMPLE)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(transfer.EXAMPLE) - 1, hard))
        done = self.run_with_status(2, 'export')
        self.assertEqual('Error: Standard output cannot be written: File too large.\n', done.stderr)

    def test_new_and_existing_files_and_links(self):
        """An existing file and its permissions are replaced, and a symbolic link is kept."""
        link = self.folder / 'link'
        link.symlink_to(self.path)
        for path in (self.path, self.path, link):
            self.export_to(path)
            self.assertEqual(self.export(), self.path.read_bytes())
            self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))
            self.assertEqual({self.path, link}, set(self.folder.iterdir()))
            self.path.write_bytes(b'old' * 1000)
            self.path.chmod(0o644)
        self.assertTrue(link.is_symlink())

    def test_paths_of_other_files(self):
        """A device is not replaced. Only an export can be written to one."""
        self.export_to(Path('/dev/null'))
        self.assertTrue(Path('/dev/null').is_char_device())
        for path in ('/dev/null', str(self.folder)):
            self.refused(f'{path} is not a regular file.', 'report', path)
        self.refused('No such file or directory', 'report', f'{self.folder}/missing/a')
        self.assertEqual([], list(self.folder.iterdir()))

    def test_a_failure_leaves_the_old_file(self):
        """The export fails after its first lines, or a signal ends it."""
        self.load(transfer.EXAMPLE)
        self.path.write_bytes(b'old')
        self.execute(sa.text("UPDATE traits SET created_at = 'yesterday'"))
        self.refused('The table traits', 'export', str(self.path))
        self.load_example()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            modes = []
            # The test process can ignore a signal, for example if it runs in the background.
            handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            self.addCleanup(signal.signal, number, signal.signal(number, handler))

            @contextlib.contextmanager
            def progress(*_: Any, number: int = number, modes: list[int] = modes) -> Any:
                paths = set(self.folder.iterdir()) - {self.path}
                modes += [stat.S_IMODE(path.stat().st_mode) for path in paths]
                os.kill(os.getpid(), number)
                yield

            with (
                mock.patch('placement.cmd.output.progress', progress),
                mock.patch('os._exit', side_effect=SystemExit),
            ):
                done = self.run_command('export', str(self.path))
            self.assertEqual([0o600], modes)
            self.assertEqual('Error: The command was interrupted.\n', done.stderr)
            self.assertEqual([self.path], list(self.folder.iterdir()))
            self.assertEqual(b'old', self.path.read_bytes())


@where.only_on('sqlite', reason='The names are replaced and sorted outside of the database.')
class PseudonymsTest(TransferCase):
    KEY = b'16 bytes, no mor'

    def anonymous(self, key: bytes | None = KEY) -> bytes:
        path = self.folder / 'anonymous'
        options = () if key is None else ('--key-file', self.file(key, 'key'))
        self.run_with_status(0, 'export', '--anonymize', *options, str(path))
        return path.read_bytes()

    def test_keys(self):
        """By default, the key is random, so that a guess of a name cannot be confirmed."""
        self.load(transfer.EXAMPLE)
        texts = [self.anonymous(key) for key in (self.KEY, None, None, self.KEY[:-1] + b'!')]
        self.assertEqual(4, len(set(texts)))
        self.assertEqual(texts[0], self.anonymous())
        guess = hmac.new(b'', b'project\0project-1', hashlib.sha256).hexdigest()[:20]
        self.assertNotIn(guess.encode(), b''.join(texts))

    def test_random_clouds(self):
        """Names have pseudonyms in rows and references; the lines are in their order."""
        for seed in seeds(3):
            servers.delete_all_rows(self.engine)
            rows = [*documents.random_rows(seed), documents.row('project', INCOMPLETE)]
            rows.sort(key=place)
            self.load(documents.file_of(rows))
            expected = sorted(map(self.renamed, rows), key=place)
            data = documents.file_of(expected)
            self.assertEqual(data.decode(), self.anonymous().decode())
            servers.delete_all_rows(self.engine)
            self.assertUnchanged(data)

    def renamed(self, row: documents.Row) -> documents.Row:
        """Return a row with pseudonyms."""
        if row['kind'] == 'provider':
            return {**row, 'name': f'provider-{row["uuid"]}'}
        own = dict.fromkeys(('name', 'external_id'), row['kind'])
        return {
            field: self.pseudonym(own.get(field, field), value) if field != 'kind' else value
            for field, value in row.items()
        }

    def pseudonym(self, kind: str, value: Any) -> Any:
        text = f'{kind}\0{value}'.encode()
        digest = hmac.new(self.KEY, text, hashlib.sha256).hexdigest()[:20]
        if value in (None, INCOMPLETE, 'INSTANCE', 'MIGRATION'):
            return value
        if kind in ('resource_class', 'trait') and value.startswith('CUSTOM_'):
            return f'CUSTOM_{digest.upper()}'
        names = {'consumer_type': f'TYPE_{digest.upper()}'}
        names |= {owner: f'{owner}-{digest}' for owner in ('project', 'user')}
        return names.get(kind, value)


def place(row: documents.Row) -> tuple[Any, ...]:
    """Return what the order of lines depends on; the order of providers stays the same."""
    kind = row['kind']
    lengths = dict.fromkeys(('inventory', 'provider_trait', 'provider_aggregate'), 2)
    length = {**lengths, 'provider': 0, 'allocation': 3}.get(kind, 1)
    key = [row[field] for field in documents.FIELDS[kind][:length]]
    return documents.KINDS.index(kind), *key


class InterruptionTest(TransferCase):
    """An import that ends early leaves an empty database."""

    def end_early(self, number: signal.Signals, position: int, data: bytes) -> tuple[int, str]:
        """Send a signal to an import that has read a part of the file."""
        process = self.start('import', '-', stdin=programs.PIPE)
        # When this call returns, the process has read all but the last `_BUFFERS` bytes.
        process.stdin.write(data[:position])
        process.stdin.flush()
        for _ in range(LONGEST // 10):
            # Python ignores an interrupt that arrives while it deletes an object.
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                break
        process.kill()
        errors = process.stderr.read().decode()
        status = process.wait(LONGEST)
        process.stdin.close()
        process.stderr.close()
        return status, errors

    def test_a_killed_import_leaves_an_empty_database(self):
        data = large_file()
        self.assertLess(3 * _BUFFERS, len(data))
        moments = random.Random(_SEED)
        for _ in range(3):
            position = moments.randrange(2 * _BUFFERS, len(data))
            with self.subTest(position=position):
                status, _ = self.end_early(signal.SIGKILL, position, data)
                self.assertEqual(-signal.SIGKILL, status)
                self.assertEqual({}, self.counts())
        done = self.run_command('import', self.file(data))
        self.assertEqual(0, done.status, done.stderr)

    def test_an_interrupted_import_leaves_an_empty_database(self):
        status, errors = self.end_early(signal.SIGINT, 2 * _BUFFERS, large_file())
        self.assertEqual((2, 'Error: The command was interrupted.\n'), (status, errors))
        self.assertEqual({}, self.counts())

    @where.only_on(
        'mariadb', 'mysql', reason='Only MySQL and MariaDB can read rows of other transactions.'
    )
    def test_rows_are_written_before_the_end_of_the_file(self):
        # Without this, the other tests would not test a rollback.
        data = large_file()
        process = self.start('import', '-', stdin=programs.PIPE)
        process.stdin.write(data[:-10])
        process.stdin.flush()
        engine = sa.create_engine(
            self.database.url, poolclass=sa.NullPool, isolation_level='READ UNCOMMITTED'
        )
        with engine.connect() as conn:
            number = sa.select(sa.func.count()).select_from(models.placement_aggregates)
            self.assertLess(0, conn.scalar(number))
        process.kill()
        process.wait(LONGEST)
        process.stdin.close()
        process.stderr.close()
        self.assertEqual({}, self.counts())
