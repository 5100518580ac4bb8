"""Writes a file that appears under its name only when it is complete.

Only the owner can read the file, because it contains names and UUIDs of the cloud. This also
applies if the file replaces a file with other permissions.
"""

from collections.abc import Iterator
import contextlib
import gzip
import os
from pathlib import Path
import sys
import tempfile
from typing import Any, BinaryIO

from placement.admin.console import CannotProceedError

# As the name of a file, this is standard output or standard input.
STANDARD = '-'
COMPRESSED = '.gz'
# PERF: level 6, the default, saves 15 % of the size and takes three times as long.
_LEVEL = 3


class _CheckedError(Exception):
    """The file can be written."""


def check(path: str) -> None:
    """Check, before long work, that the file can be written.

    :raises CannotProceedError: the file cannot be written, or the path is not that of a file
    """
    with contextlib.suppress(_CheckedError), replacing(path):
        raise _CheckedError


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Yield a temporary file, which replaces the file at the path when the block ends.

    The block must do nothing but write. If it raises an exception, the temporary file is deleted,
    and an existing file stays as it is.

    :raises CannotProceedError: the file cannot be written, or the path is not that of a file
    """
    with _refusing(path):
        target = Path(path).resolve()
        if _is_special(target):
            raise CannotProceedError(f'{target} is not a regular file.')
        # The mode of this file is 0600.
        prefix = f'.{target.name[:100]}.'
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, dir=target.parent)
        try:
            with os.fdopen(descriptor, 'wb') as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        finally:
            Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def destination(path: str) -> Iterator[BinaryIO]:
    """Yield a file to write to, which can also be standard output, a device, or a named pipe.

    A regular file appears only after the block has succeeded. It is compressed if its name ends in
    `.gz`.

    :raises CannotProceedError: the file cannot be written
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_refusing(path))
        if path == STANDARD:
            # `sys.stdout` would write the rest of its buffer again when the process exits.
            descriptor = os.dup(sys.stdout.fileno())
            file: Any = stack.enter_context(os.fdopen(descriptor, 'wb'))
        elif _is_special(Path(path)):
            file = stack.enter_context(Path(path).open('wb'))
        else:
            file = stack.enter_context(replacing(path))
        if path.endswith(COMPRESSED):
            # Without the name and the time, equal contents are equal files.
            file = stack.enter_context(gzip.GzipFile('', 'wb', _LEVEL, file, mtime=0))
        yield file


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


@contextlib.contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        what = 'Standard output' if path == STANDARD else f'The file {path}'
        reason = error.strerror or str(error)
        raise CannotProceedError(f'{what} cannot be written: {reason}.') from error
