"""Files that appear only when they are complete."""

import errno
import os
import pathlib
import stat

import fixtures
from oslotest import base

from placement.admin import atomic_file
from placement.admin.failure import CannotProceedError


class AtomicFileTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'file'

    def write(self, content: bytes) -> None:
        with atomic_file.replacing(str(self.path)) as file:
            file.write(content)

    def mode(self) -> int:
        return stat.S_IMODE(self.path.stat().st_mode)

    def test_only_the_owner_can_read_a_new_file(self):
        self.addCleanup(os.umask, os.umask(0))
        self.write(b'content')
        self.assertEqual(b'content', self.path.read_bytes())
        self.assertEqual(0o600, self.mode())
        self.assertEqual([self.path], list(self.folder.iterdir()))

    def test_an_existing_file_and_its_permissions_are_replaced(self):
        self.path.write_bytes(b'a longer old content')
        self.path.chmod(0o644)
        self.write(b'new')
        self.assertEqual(b'new', self.path.read_bytes())
        self.assertEqual(0o600, self.mode())

    def test_other_users_cannot_read_the_temporary_file(self):
        with atomic_file.replacing(str(self.path)):
            modes = [stat.S_IMODE(path.stat().st_mode) for path in self.folder.iterdir()]
        self.assertEqual([0o600], modes)

    def test_a_symbolic_link_stays(self):
        target = self.folder / 'target'
        self.path.symlink_to(target)
        self.write(b'content')
        self.assertEqual(b'content', target.read_bytes())
        self.assertTrue(self.path.is_symlink())

    def test_nothing_changes_before_the_end(self):
        self.path.write_bytes(b'old')
        with atomic_file.replacing(str(self.path)) as file:
            file.write(b'new')
            file.flush()
            self.assertEqual(b'old', self.path.read_bytes())

    def test_nothing_is_left_after_an_error(self):
        self.path.write_bytes(b'old')
        for error in (KeyboardInterrupt, ValueError):
            with self.assertRaises(error), atomic_file.replacing(str(self.path)) as file:
                file.write(b'new')
                raise error
        self.assertEqual([self.path], list(self.folder.iterdir()))
        self.assertEqual(b'old', self.path.read_bytes())

    def test_a_full_disk_is_one_sentence(self):
        def fail():
            with atomic_file.replacing(str(self.path)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        error = self.assertRaises(CannotProceedError, fail)
        self.assertEqual(
            f'The file {self.path} cannot be written: No space left on device.', str(error)
        )
        self.assertEqual([], list(self.folder.iterdir()))

    def test_check_leaves_no_file(self):
        atomic_file.check(str(self.path))
        self.assertEqual([], list(self.folder.iterdir()))

    def test_refused_paths(self):
        for path, reason in (
            (self.folder / 'missing' / 'file', 'No such file or directory'),
            (self.folder, 'not a regular file'),
            (pathlib.Path(os.devnull), 'not a regular file'),
        ):
            error = self.assertRaises(CannotProceedError, atomic_file.check, str(path))
            self.assertIn(reason, str(error))
            with self.assertRaises(CannotProceedError), atomic_file.replacing(str(path)):
                self.fail()
