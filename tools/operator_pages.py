"""Write the output of the commands into the guide pages: ``python -m tools.operator_pages``.

The tool executes the pages like ``placement/tests/functional/cmd/test_operator_pages.py``, which
compares them. It replaces only outputs that differ. Read the differences before you commit them.
"""

import argparse
from pathlib import Path
import tempfile

from placement.tests.functional.cmd import console_pages


def main() -> None:
    """Update the pages that the command line names; by default, all pages."""
    parser = argparse.ArgumentParser(description='Write the output of commands into guide pages.')
    names = (*console_pages.PAGES, console_pages.RUNBOOKS)
    parser.add_argument('pages', nargs='*', metavar='PAGE', help=f'some of: {", ".join(names)}')
    for name in parser.parse_args().pages or names:
        page = console_pages.FOLDER / f'{name}.rst'
        if page.exists():
            _update(page, name == console_pages.RUNBOOKS)


def _update(page: Path, has_runbooks: bool) -> None:
    before = page.read_text()
    if has_runbooks:
        (_, start), *sections = console_pages.runbooks(before)
        after = start + ''.join(_executed(text, title) for title, text in sections)
    else:
        after = _executed(before)
    page.write_text(after)
    print(f'{page}: {"unchanged" if before == after else "updated"}')


def _executed(text: str, runbook: str | None = None) -> str:
    with tempfile.TemporaryDirectory(prefix='placement-pages-') as folder:
        return console_pages.updated(text, console_pages.Session(Path(folder), runbook))


if __name__ == '__main__':
    main()
