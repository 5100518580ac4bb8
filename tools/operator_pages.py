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
    parser.add_argument(
        'pages', nargs='*', metavar='PAGE', help=f'some of: {", ".join(console_pages.PAGES)}'
    )
    for name in parser.parse_args().pages or console_pages.PAGES:
        page = console_pages.FOLDER / f'{name}.rst'
        if page.exists():
            _update(page)


def _update(page: Path) -> None:
    before = page.read_text()
    with tempfile.TemporaryDirectory(prefix='placement-pages-') as folder:
        after = console_pages.updated(before, console_pages.Session(Path(folder)))
    page.write_text(after)
    print(f'{page}: {"unchanged" if before == after else "updated"}')


if __name__ == '__main__':
    main()
