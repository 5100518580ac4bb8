"""Writes a file that appears under its name only when it is complete.

Only the owner can read the file, because it contains names and UUIDs of the cloud. This also
applies if the file replaces a file with other permissions.
"""

from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import stat
import tempfile
from typing import BinaryIO

from placement.admin.failure import CannotProceedError


def check(path: str) -> None:
    """Check, before long work, that the file can be written.

    :raises CannotProceedError: the file cannot be written, or the path is not that of a file
    """
    with _refusing(path):
        target = Path(path).resolve()
        _check_kind(target)
        descriptor, temporary = _temporary(target)
        os.close(descriptor)
        temporary.unlink()


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Yield a temporary file, which replaces the file at the path when the block ends.

    The block must do nothing but write. If it raises an exception, the temporary file is deleted,
    and an existing file stays as it is.

    :raises CannotProceedError: the file cannot be written, or the path is not that of a file
    """
    with _refusing(path):
        target = Path(path).resolve()
        _check_kind(target)
        descriptor, temporary = _temporary(target)
        try:
            with os.fdopen(descriptor, 'wb') as file:
                yield file
                file.flush()
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
    """Create a file in the directory of the target; return its descriptor and path.

    Its mode is 0600.
    """
    descriptor, path = tempfile.mkstemp(prefix=f'.{target.name[:100]}.', dir=target.parent)
    return descriptor, Path(path)


def _check_kind(target: Path) -> None:
    """Check that the path is that of a regular file or of no file.

    :raises CannotProceedError: the path is that of something else
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            raise CannotProceedError(f'{target} is not a regular file.')
