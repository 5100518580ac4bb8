"""The output of the commands: the option `--format`, JSON documents, and progress bars."""

import argparse
from collections.abc import Iterator
import contextlib
import json
import sys
from typing import Any

from placement.admin import atomic_file
from placement.admin.console import Advance, CannotProceedError

TABLE, JSON = 'table', 'json'
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


def check_file(option: str, path: str) -> None:
    """Check, before long work, the file that an option of a command names.

    :raises CannotProceedError: the file cannot be written, or is standard output
    """
    if path == atomic_file.STANDARD:
        raise CannotProceedError(
            f'{option} requires the name of a file, because standard output contains the result.'
        )
    atomic_file.check(path)


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
