"""The commands `placement-manage export` and `placement-manage import`."""

import contextlib
import gzip
import hashlib
import hmac
from pathlib import Path
import random
import signal
import subprocess

import fixtures
import sqlalchemy as sa

from placement.admin.transfer import tables
from placement.cmd import program
from placement.tests import servers, where
from placement.tests.functional import programs
from placement.tests.functional.admin.transfer import base as transfer
from placement.tests.functional.cmd import base
from placement.tests.unit.admin.transfer import documents
from placement.tests.waiting import LONGEST

_SEED = 12
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


def large_file() -> bytes:
    """A file that is larger than all buffers between two processes."""
    aggregates = [
        {'kind': 'aggregate', 'uuid': f'{n:08}-0000-4000-8000-000000000000', **documents.TIMES}
        for n in range(2500)
    ]
    rows = sorted(
        [*(row for row in documents.EXAMPLE if row['kind'] != 'aggregate'), *aggregates],
        key=lambda row: documents.KINDS.index(row['kind']),
    )
    return documents.file_of(row for row in rows if row['kind'] != 'provider_aggregate')


@where.not_on('postgresql', reason='The tests of the functions run on each database.')
class CommandTest(TransferCase):
    def test_files(self):
        data = documents.file_of(documents.EXAMPLE)
        done = self.run_command('import', self.file(data))
        self.assertEqual((0, ''), (done.returncode, done.stdout))
        self.assertEqual(f'{len(documents.EXAMPLE)} rows are imported.\n', last(done.stderr))
        for name in ('copy.jsonl', 'copy.jsonl.gz'):
            path = self.folder / name
            done = self.run_command('export', str(path))
            self.assertEqual((0, ''), (done.returncode, done.stdout))
            copy = path.read_bytes()
            self.assertEqual(data, gzip.decompress(copy) if name.endswith('.gz') else copy)
        servers.delete_all_rows(self.engine)
        self.assertEqual(0, self.run_command('import', str(path)).returncode)
        self.assertEqual(data, self.export())

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_refusals(self):
        data = documents.file_of(documents.EXAMPLE)
        for arguments, text in (
            (('import', self.file(data[:-1], 'cut')), 'Line 23: The file is cut off; '),
            (('import', self.file(data, 'a.gz')), 'Line 1: The file is not compressed'),
            (('import', str(self.folder / 'missing')), 'missing cannot be used: '),
            (('export', '/dev/full'), 'to /dev/full: No space left on device.'),
            (('export', '--key-file', self.file(b'k', 'key')), 'without --anonymize'),
            (
                ('export', '--anonymize', '--key-file', self.file(b'', 'empty')),
                'empty contains 0 bytes, but a key has at least 16.',
            ),
            (
                ('export', '--anonymize', '--key-file', self.file(b'15 bytes, no mo\n', 'short')),
                'short contains 15 bytes, but a key has at least 16.',
            ),
            (
                ('export', '--anonymize', '--key-file', str(self.folder / 'none')),
                'none cannot be read: No such file or directory.',
            ),
            (('export', '--anonymize', '--key-file', ''), 'cannot be read: '),
        ):
            with self.subTest(text):
                done = self.run_command(*arguments)
                self.assertEqual((2, ''), (done.returncode, done.stdout), done.stderr)
                self.assertIn(text, last(done.stderr))
                self.assertTrue(last(done.stderr).startswith('Error: '), done.stderr)
                self.assertNotIn('Traceback', done.stderr)
        self.assertEqual({}, self.counts())

    def test_force(self):
        self.assertEqual(
            0,
            self.run_command('import', self.file(documents.file_of(documents.EXAMPLE))).returncode,
        )
        other = self.file(documents.file_of(documents.random_rows(_SEED)))
        self.assertEqual(2, self.run_command('import', other).returncode)
        done = self.run_command('import', '--force', other)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_pseudonyms(self):
        self.load(documents.file_of(documents.EXAMPLE))
        key = self.file(b'16 bytes, no mor', 'key')
        random, other = (self.run_command('export', '--anonymize').stdout for _ in range(2))
        keyed, again = (
            self.run_command('export', '--anonymize', '--key-file', key).stdout for _ in range(2)
        )
        self.assertEqual(3, len({random, other, keyed}))
        self.assertEqual(keyed, again)
        # Without the key, a guess of a name cannot be confirmed.
        guess = hmac.new(b'', b'project\0project-1', hashlib.sha256).hexdigest()[:20]
        for text in (random, other, keyed):
            self.assertNotIn(guess, text)
            self.assertEqual(len(documents.EXAMPLE) + 1, text.count('\n'))
            for name in ('pool', 'CUSTOM_FAST', 'CUSTOM_GPU', 'project-1', 'user-1'):
                self.assertNotIn(f'"{name}"', text)

    def test_usage_above_the_capacity_is_reported(self):
        data, _ = documents.edited(documents.change('allocation', 2, used=93))
        done = self.run_command('import', self.file(data))
        self.assertEqual((0, ''), (done.returncode, done.stdout))
        name = documents.EXAMPLE[5]['name']
        self.assertIn(
            f'Provider {documents.HOST} ({name}): 97 of 96 VCPU are in use.\n', done.stderr
        )

    def test_a_reader_that_closes_the_pipe(self):
        self.load(large_file())
        process = self.start('export', stdout=programs.PIPE)
        process.stdout.read(100)
        process.stdout.close()
        errors = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual((program.CLOSED, ''), (process.wait(LONGEST), errors))


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
        self.assertEqual(0, done.returncode, done.stderr)

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
            self.assertLess(0, tables.counts(conn)['aggregate'])
        process.kill()
        process.wait(LONGEST)
        process.stdin.close()
        process.stderr.close()
        self.assertEqual({}, self.counts())


def last(text: str) -> str:
    """The last line of a text; a migration can write other lines before it."""
    return text.splitlines(keepends=True)[-1] if text else ''
