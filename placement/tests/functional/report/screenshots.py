"""The screenshots of the guide page of `placement-manage report`.

`python -m tools.pages --screenshots` writes them into the documentation.
"""

from pathlib import Path

from placement.tests.functional.browser import Browser

_SIZE = (1180, 720)
_NAMES = ('light', 'tree')


def make(browser: Browser, page: Path, folder: Path) -> list[Path]:
    """Write the screenshots of a page to a folder and return their paths."""
    paths = [folder / f'report-{name}.png' for name in _NAMES]
    for name, path in zip(_NAMES, paths, strict=True):
        browser.open(page, _SIZE)
        if name == 'tree':
            browser.script('document.getElementById("map").scrollIntoView()')
            browser.button('numa-03', '#provider-table').click()
        path.write_bytes(browser.screenshot())
    return paths
