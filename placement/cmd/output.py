"""The output of the commands: the option `--format`, JSON documents, files, and progress bars.

A file appears under its name only when it is complete. Only the owner can read it, because it
contains names and UUIDs of the cloud. This also applies if the file replaces a file with other
permissions.
"""

import argparse
from collections.abc import Iterator
import contextlib
import gzip
import json
import os
from pathlib import Path
import sys
import tempfile
from typing import Any, BinaryIO

from placement.admin.console import Advance, CannotProceedError

TABLE, JSON = 'table', 'json'
# As the name of a file, this is standard output or standard input.
STANDARD = '-'
COMPRESSED = '.gz'
# PERF: level 6, the default, saves 15 % of the size and takes three times as long.
_LEVEL = 3
# The seconds after which a progress bar appears.
DELAY = 2


def add_format_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--format`."""
    parser.add_argument(
        '--format', choices=(TABLE, JSON), default=TABLE, help='default: %(default)s'
    )


def add_names_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--names`."""
    parser.add_argument(
        '--names',
        metavar='FILE',
        action='append',
        default=[],
        help='print the names of UUIDs from this file, a list that `openstack ... list -f json` '
        'printed; the option can be repeated',
    )


def print_document(document: Any) -> None:
    """Print a JSON document in one line, with times as texts."""
    print(json.dumps(document, default=str))


def print_text(text: str) -> None:
    r"""Print a text, with `\xe4` and similar in place of characters that the encoding lacks."""
    encoding = sys.stdout.encoding or 'utf-8'
    print(text.encode(encoding, 'backslashreplace').decode(encoding))


def notify(sentence: str | None) -> None:
    """Print a sentence to standard error, so that standard output contains only the result.

    If both are the same file, the sentence follows the result.
    """
    if sentence:
        print(end='', flush=True)
        print(sentence, file=sys.stderr)


def confirm(what: str, before: str, warning: str, question: str) -> None:
    """Ask the operator on the terminal.

    :param what: what needs the confirmation
    :param before: what a script has to do before
    :param warning: the sentence before the question
    :raises CannotProceedError: the answer is not yes, or standard input is not a terminal
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise CannotProceedError(
            f'{what} needs a confirmation, and standard input is not a terminal: {before}, and '
            'add --yes.'
        )
    notify(warning)
    print(question, end='', file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != 'yes':
        raise CannotProceedError('The answer was not yes, so nothing was changed.')


# Files ----------------------------------------------------------------------------


class _CheckedError(Exception):
    """The file can be written."""


def check_file(option: str, path: str) -> None:
    """Check, before long work, the file that an option of a command names.

    :raises CannotProceedError: the file cannot be written, or is standard output
    """
    if path == STANDARD:
        raise CannotProceedError(
            f'{option} requires the name of a file, because standard output contains the result.'
        )
    check(path)


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


# Progress -------------------------------------------------------------------------


@contextlib.contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar for one step of the work, if standard error is a terminal.

    The bar appears after `DELAY` seconds. It needs the library tqdm (the extra `tools`).
    """
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda _count: None
        return
    # None disables the bar if the file is no terminal.
    with tqdm(
        desc=label, total=total, delay=DELAY, leave=False, file=sys.stderr, disable=None
    ) as bar:
        yield bar.update
