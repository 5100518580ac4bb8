"""Writes a file that appears under its name only when it is complete."""

from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import stat
import tempfile
from typing import BinaryIO

from placement.admin.failure import CannotProceedError

# The permissions of a new file, before the umask is applied.
_MODE = 0o666
# The permissions of a file that only its owner can read.
_PRIVATE = 0o600


def check(path: str) -> None:
    """Check, before long work, that the file can be written.

    :raises CannotProceedError: the file cannot be written, or the path is not that of a file
    """
    with _refusing(path):
        target = Path(path).resolve()
        _mode(target)
        descriptor, temporary = _temporary(target)
        os.close(descriptor)
        temporary.unlink()


@contextlib.contextmanager
def replacing(path: str, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a temporary file, which replaces the file at the path when the block ends.

    The block must do nothing but write. If it raises an exception, the temporary file is deleted,
    and an existing file stays as it is.

    :param private: whether only the owner can read the file
    :raises CannotProceedError: the file cannot be written, or the path is not that of a file
    """
    with _refusing(path):
        target = Path(path).resolve()
        mode = _mode(target)
        if private:
            mode = _PRIVATE
        descriptor, temporary = _temporary(target)
        try:
            with os.fdopen(descriptor, 'wb') as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotProceedError(f'The file {path} cannot be written: {reason}.') from error


def _temporary(target: Path) -> tuple[int, Path]:
    """Create a file in the directory of the target; return its descriptor and path."""
    descriptor, path = tempfile.mkstemp(prefix=f'.{target.name[:100]}.', dir=target.parent)
    return descriptor, Path(path)


def _mode(target: Path) -> int:
    """Return the permissions of the existing file, or those of a new file.

    :raises CannotProceedError: the path exists, but is not that of a file
    """
    try:
        existing = target.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return _MODE & ~umask
    if not stat.S_ISREG(existing.st_mode):
        raise CannotProceedError(f'{target} is not a regular file.')
    return stat.S_IMODE(existing.st_mode)
