"""Write what programs print into the pages of the guides: ``python -m tools.pages``.

The tool executes the console blocks of the pages for operators, as
``placement/tests/functional/cmd/test_operator_pages.py`` does, and sends the requests of the worked
examples (the gabbi files ``guide-*.yaml``) to an empty service, as
``placement/tests/functional/test_example_pages.py`` does. It replaces only what differs. Read the
differences before you commit them.

With ``--screenshots``, it writes the screenshots of the report of the demo cloud instead. Chromium
and ChromeDriver must be installed.
"""

import argparse
import contextlib
from pathlib import Path
import tempfile

from placement.tests.functional import example_pages
from placement.tests.functional.browser import Browser
from placement.tests.functional.cmd import console_pages
from placement.tests.functional.report import demo_page, screenshots


def main() -> None:
    """Update the pages that the command line names; by default, all pages."""
    guides = example_pages.guides()
    names = [*console_pages.PAGES, *console_pages.RUNBOOKS, *guides]
    parser = argparse.ArgumentParser(description='Write the output of programs into guide pages.')
    parser.add_argument('pages', nargs='*', metavar='PAGE', help=f'some of: {", ".join(names)}')
    parser.add_argument('--screenshots', action='store_true', help='write the screenshots instead')
    options = parser.parse_args()
    if options.screenshots:
        _write_screenshots()
        return
    for name in options.pages or names:
        path = example_pages.page(name) if name in guides else console_pages.FOLDER / f'{name}.rst'
        before = path.read_text()
        if name in guides:
            after = example_pages.updated(before, example_pages.record(name))
        else:
            after = _executed(before, name if name in console_pages.RUNBOOKS else None)
        path.write_text(after)
        print(f'{path}: {"unchanged" if before == after else "updated"}')


def _executed(text: str, runbook: str | None) -> str:
    with tempfile.TemporaryDirectory(prefix='placement-pages-') as folder:
        return console_pages.updated(text, console_pages.Session(Path(folder), runbook))


def _write_screenshots() -> None:
    with (
        contextlib.closing(Browser()) as browser,
        tempfile.TemporaryDirectory(prefix='placement-report-') as folder,
    ):
        page = Path(folder, 'report.html')
        page.write_bytes(demo_page.content())
        for path in screenshots.make(browser, page, console_pages.FOLDER):
            print(f'{path}: {path.stat().st_size / 1024:.0f} KiB')


if __name__ == '__main__':
    main()
