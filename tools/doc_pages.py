"""Open pages of the built documentation in Chromium: ``python -m tools.doc_pages``.

The check fails in these cases:

* Any page is wider than the window of a desktop or a phone.
* One of `PAGES` violates a rule of axe-core.
* On a phone, the title is not in the upper half of the first screen, or the navigation is open.
* The keyboard cannot open the navigation, or select a form of a request.
* An anchor of the page that once contained the whole API reference leads nowhere.
* A search does not list its page among its first results.

`tools/docs.py` builds the pages. If Chromium, ChromeDriver, or the packages of the tests are not
installed, the check does nothing, unless PLACEMENT_TEST_REQUIRE_SERVERS is set.
"""

from collections.abc import Iterable, Iterator
import importlib.util
from pathlib import Path
import sys
from typing import TYPE_CHECKING, Any
import unittest
from urllib.parse import urlencode

if TYPE_CHECKING:
    from placement.tests.functional.browser import Browser

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ROOT / 'doc' / 'build' / 'html'
REFERENCE = ROOT / 'api-ref' / 'build' / 'html'
PAGES = (
    GUIDES / 'index.html',
    GUIDES / 'admin' / 'index.html',
    GUIDES / 'admin' / 'databases.html',
    GUIDES / 'user' / 'guide-gpu.html',
    GUIDES / 'user' / 'recipes.html',
    REFERENCE / 'index.html',
    REFERENCE / 'provider-traits.html',
)
# Anchors of the former single page -> the page that contains the anchor today.
MOVED = {
    'list-versions': 'versions.html',
    'update-resource-provider-inventory-example': 'provider-inventories.html',
    'list-traits-request': 'traits.html',
    'reshaper': 'reshaper.html',
    'order-of-checks': 'conventions.html',
    'error-codes': 'errors.html',
}
# Words that readers search for -> a URL that the search must list among its first results.
SEARCHES = {
    'same_subtree': f'{REFERENCE.as_uri()}/allocation-candidates.html',
    'generation conflict': f'{GUIDES.as_uri()}/user/generations.html',
    'NoValidHost': f'{GUIDES.as_uri()}/admin/explain.html',
    'pagination': f'{REFERENCE.as_uri()}/conventions.html',
    'RBAC': f'{GUIDES.as_uri()}/admin/policy.html',
    'oversubscription': f'{GUIDES.as_uri()}/user/concepts.html',
    'idempotency': f'{GUIDES.as_uri()}/user/generations.html',
    'rate limits': f'{GUIDES.as_uri()}/admin/deployment.html',
    'orphaned allocations': f'{GUIDES.as_uri()}/admin/audit.html',
    'The previous policy rules stay in force': (
        f'{GUIDES.as_uri()}/admin/logging.html#the-previous-policy-rules-stay-in-force'
    ),
    'The database is unavailable': (
        f'{GUIDES.as_uri()}/admin/logging.html#the-database-is-unavailable'
    ),
}
# The page must be among this number of first results.
FIRST = 3
_WIDTH = 'return document.documentElement.scrollWidth'
_OPEN_ALL = 'for (const one of document.querySelectorAll("details")) one.open = true'
_TITLE_BOTTOM = 'return document.querySelector("h1").getBoundingClientRect().bottom'
_IS_OPEN = 'return document.getElementById("navigation").open'
_IS_VISIBLE = (
    'const top = document.getElementById(arguments[0])?.getBoundingClientRect().top;'
    'return top >= 0 && top < innerHeight'
)
_RESULTS = (
    'return document.querySelector("#search-results p")?.textContent.includes("finished") &&'
    '[...document.querySelectorAll("#search-results li a")].map((link) => link.href)'
)


def problems(browser: 'Browser') -> Iterator[str]:
    """Open the pages, and yield a sentence for each problem."""
    from placement.tests.functional.browser import DESKTOP, PHONE

    for page in PAGES:
        for size in (DESKTOP, PHONE):
            _open(browser, page.as_uri(), size)
            found = _layout(browser, size) if size == PHONE else []
            browser.script(_OPEN_ALL)
            found += [f'it violates {rule}: {nodes}' for rule, nodes in browser.violations()]
            if browser.script(_WIDTH) != size[0]:
                found.append('it is wider than the window')
            yield from (f'{page}, width {size[0]}: {problem}' for problem in found)
    yield from _widths(browser, (DESKTOP, PHONE))
    yield from _forms(browser, DESKTOP)
    _follow_moved(browser, DESKTOP)
    yield from _searches(browser)


def _resize(browser: 'Browser', size: tuple[int, int]) -> None:
    width, height = size
    metrics = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 500}
    browser.cdp('Emulation.setDeviceMetricsOverride', **metrics)


def _widths(browser: 'Browser', sizes: Iterable[tuple[int, int]]) -> Iterator[str]:
    pages = [page for folder in (GUIDES, REFERENCE) for page in sorted(folder.rglob('*.html'))]
    for page in pages:
        browser.driver.get(page.as_uri())
        for size in sizes:
            _resize(browser, size)
            if browser.script(_WIDTH) != size[0]:
                yield f'{page}, width {size[0]}: it is wider than the window'


def _open(browser: 'Browser', url: str, size: tuple[int, int]) -> None:
    _resize(browser, size)
    # Without this step, a new fragment would not load the page again.
    browser.driver.get('about:blank')
    browser.driver.get(url)


def _layout(browser: 'Browser', size: tuple[int, int]) -> list[str]:
    found: list[str] = []
    if browser.script(_TITLE_BOTTOM) > size[1] / 2:
        found.append('the title is not in the upper half of the screen')
    if browser.script(_IS_OPEN):
        found.append('the navigation is open')
    browser.find('#navigation > summary').send_keys('\n')
    if not browser.script(_IS_OPEN):
        found.append('the keyboard does not open the navigation')
    return found


def _forms(browser: 'Browser', size: tuple[int, int]) -> Iterator[str]:
    page = GUIDES / 'user' / 'guide-gpu.html'
    _open(browser, page.as_uri(), size)
    browser.tab_to('.sd-tab-set > input')
    browser.press('\ue014')  # the right arrow
    # The same form is selected for all requests.
    selected = browser.texts('.sd-tab-set > input:checked + label')
    if {label.strip() for label in selected} != {'curl'}:
        yield f'{page}: the keyboard does not select the form for curl'
    if not browser.wait('return document.querySelectorAll("button.copybtn").length') > len(
        selected
    ):
        yield f'{page}: no button copies a block'


def _follow_moved(browser: 'Browser', size: tuple[int, int]) -> None:
    """Open the anchors of the former page.

    :raises AssertionError: the browser does not display the section
    """
    index = (REFERENCE / 'index.html').as_uri()
    for anchor, page in MOVED.items():
        _open(browser, f'{index}#{anchor}', size)
        browser.wait(
            'return location.href === arguments[0]', f'{(REFERENCE / page).as_uri()}#{anchor}'
        )
        # The browser scrolls step by step.
        browser.wait(_IS_VISIBLE, anchor)


def _searches(browser: 'Browser') -> Iterator[str]:
    for words, url in SEARCHES.items():
        browser.driver.get(f'{(GUIDES / "search.html").as_uri()}?{urlencode({"q": words})}')
        links: list[Any] = browser.wait(_RESULTS)
        if not any(link.startswith(url) for link in links[:FIRST]):
            yield f'The search for {words!r} does not list {url} among its first results.'


def main() -> int:
    """Check the pages; return 1 if there is a problem."""
    if importlib.util.find_spec('selenium') is None:
        print('The pages are not opened: selenium is not installed.')
        return 0
    from placement.tests.functional.browser import Browser

    try:
        browser = Browser()
    except unittest.SkipTest as exc:
        print(f'The pages are not opened: {exc}.')
        return 0
    try:
        found = list(problems(browser))
    finally:
        browser.close()
    print(*found, f'{len(found)} problems of the pages', sep='\n')
    return int(bool(found))


if __name__ == '__main__':
    sys.exit(main())
