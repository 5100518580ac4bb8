"""Write the screenshots of the report into the guide: ``python -m tools.report_screenshots``.

The page is the report of the demo cloud. Chromium and ChromeDriver must be installed.
"""

from pathlib import Path
import tempfile

from placement.tests.functional.browser import Browser
from placement.tests.functional.report import demo_page, screenshots

_FOLDER = Path(__file__).resolve().parents[1] / 'doc' / 'source' / 'admin'


def main() -> None:
    """Make the report of the demo cloud, open it, and write the screenshots."""
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory(prefix='placement-report-') as folder:
            page = Path(folder, 'report.html')
            page.write_bytes(demo_page.content())
            for path in screenshots.make(browser, page, _FOLDER):
                print(f'{path}: {path.stat().st_size / 1024:.0f} KiB')
    finally:
        browser.close()


if __name__ == '__main__':
    main()
