"""The file of an export is complete or does not exist."""

import gzip
import os
from pathlib import Path
import stat
import tempfile

from oslotest import base

from placement.admin.failure import CannotProceedError
from placement.admin.transfer import files


class DestinationTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / 'cloud.jsonl'

    def write(self, path: Path, data: bytes = b'text') -> None:
        with files.destination(str(path)) as file:
            file.write(data)

    def test_only_the_owner_can_read_the_file(self):
        self.write(self.path)
        self.assertEqual(b'text', self.path.read_bytes())
        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))
        self.assertEqual([self.path], list(self.folder.iterdir()))

    def test_the_file_does_not_exist_before_the_end(self):
        with files.destination(str(self.path)) as file:
            file.write(b'text')
            self.assertFalse(self.path.exists())
        self.assertTrue(self.path.exists())

    def test_a_failure_leaves_nothing_behind(self):
        for error in (RuntimeError, KeyboardInterrupt):
            with self.assertRaises(error), files.destination(str(self.path)) as file:
                file.write(b'text')
                raise error
            self.assertEqual([], list(self.folder.iterdir()))

    def test_a_failure_keeps_an_existing_file(self):
        self.path.write_bytes(b'old')
        with self.assertRaises(RuntimeError), files.destination(str(self.path)):
            raise RuntimeError
        self.assertEqual(b'old', self.path.read_bytes())
        self.write(self.path)
        self.assertEqual(b'text', self.path.read_bytes())

    def test_a_symbolic_link_is_kept(self):
        link = self.folder / 'link'
        link.symlink_to(self.path)
        self.write(link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(b'text', self.path.read_bytes())

    def test_a_device_is_not_replaced(self):
        self.write(Path('/dev/null'))
        self.assertTrue(Path('/dev/null').is_char_device())

    def test_compression_depends_on_the_name(self):
        path = self.folder / 'cloud.jsonl.gz'
        self.write(path)
        first = path.read_bytes()
        self.assertEqual(b'text', gzip.decompress(first))
        self.write(path)
        self.assertEqual(first, path.read_bytes(), 'equal exports are equal files')
        with files.source(str(path)) as file:
            self.assertEqual(b'text', file.read())

    def test_a_full_disk_is_one_sentence(self):
        with self.assertRaises(CannotProceedError) as caught:
            self.write(Path('/dev/full'))
        self.assertEqual(
            'The export cannot be written to /dev/full: No space left on device.',
            str(caught.exception),
        )

    def test_a_missing_directory_is_one_sentence(self):
        with self.assertRaises(CannotProceedError) as caught:
            self.write(self.folder / 'missing' / 'cloud.jsonl')
        self.assertIn('No such file or directory.', str(caught.exception))

    def test_a_closed_pipe_is_left_to_the_program(self):
        pipe = self.folder / 'pipe'
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with self.assertRaises(BrokenPipeError), files.destination(str(pipe)) as file:
            os.close(reader)
            file.write(b'text')
        self.assertTrue(pipe.is_fifo())
