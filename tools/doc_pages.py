"""Open pages of the built documentation in Chromium: ``python -m tools.doc_pages``.

The check fails in these cases:

* Any page is wider than the window of a desktop or a phone.
* One of `PAGES` violates a rule of axe-core.
* On a phone, the title is not in the upper half of the first screen, or the navigation is open.
* The keyboard cannot open the navigation, or select a form of a request.
* The button of a shell session copies anything but the commands, or another button less than its
  block.
* An anchor of the page that once contained the whole API reference leads nowhere.
* A search does not list its page among its first results.

`tools/docs.py` builds the pages. If Chromium or ChromeDriver is not installed, the check does
nothing, unless PLACEMENT_TEST_REQUIRE_SERVERS is set.
"""

from collections.abc import Iterator
import contextlib
from pathlib import Path
import sys
from typing import Any
import unittest
from urllib.parse import urlencode

from placement.tests.functional.browser import DESKTOP, PHONE, Browser

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ROOT / 'doc' / 'build' / 'html'
REFERENCE = ROOT / 'api-ref' / 'build' / 'html'
PAGES = (
    GUIDES / 'index.html',
    GUIDES / 'admin' / 'index.html',
    GUIDES / 'admin' / 'databases.html',
    GUIDES / 'user' / 'guide-gpu.html',
    GUIDES / 'user' / 'clients.html',
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
    'generation conflict': f'{GUIDES.as_uri()}/user/clients.html',
    'NoValidHost': f'{GUIDES.as_uri()}/admin/no-valid-host.html',
    'hypervisor died': f'{GUIDES.as_uri()}/admin/host-died.html',
    'host down': f'{GUIDES.as_uri()}/admin/host-died.html',
    'host maintenance': f'{GUIDES.as_uri()}/admin/take-host-down.html',
    'renamed host': f'{GUIDES.as_uri()}/admin/host-renamed.html',
    'stuck migration': f'{GUIDES.as_uri()}/admin/stuck-migration.html',
    'restored backup': f'{GUIDES.as_uri()}/admin/database-restored.html',
    'free capacity': f'{GUIDES.as_uri()}/admin/capacity-left.html',
    'history of claims': f'{GUIDES.as_uri()}/admin/who-took-capacity.html',
    'pagination': f'{REFERENCE.as_uri()}/conventions.html',
    'RBAC': f'{GUIDES.as_uri()}/admin/configuration.html',
    'oversubscription': f'{GUIDES.as_uri()}/user/concepts.html',
    'idempotency': f'{GUIDES.as_uri()}/user/clients.html',
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
_BUTTONS = 'return document.querySelectorAll("button.copybtn").length'
# Clicks a button, and returns the text of its block and the copied text.
_COPY = """(() => {
  const button = document.querySelectorAll("button.copybtn")[INDEX];
  let copied = "";
  document.addEventListener("copy", (event) => { copied = event.target.value; }, {once: true});
  button.click();
  return [button.parentElement.querySelector("pre").textContent, copied];
})()"""
_RESULTS = (
    'return document.querySelector("#search-results p")?.textContent.includes("finished") &&'
    '[...document.querySelectorAll("#search-results li a")].map((link) => link.href)'
)


def problems(browser: Browser) -> Iterator[str]:
    """Open the pages, and yield a sentence for each problem."""
    for page in [page for folder in (GUIDES, REFERENCE) for page in sorted(folder.rglob('*.html'))]:
        for size in (DESKTOP, PHONE):
            _open(browser, page.as_uri(), size)
            found = _details(browser, size) if page in PAGES else []
            if browser.script(_WIDTH) != size[0]:
                found.append('it is wider than the window')
            if size == DESKTOP:
                found += copies(browser)
            yield from (f'{page}, width {size[0]}: {problem}' for problem in found)
    yield from _forms(browser)
    _follow_moved(browser)
    for words, url in SEARCHES.items():
        browser.driver.get(f'{(GUIDES / "search.html").as_uri()}?{urlencode({"q": words})}')
        links: list[Any] = browser.wait(_RESULTS)
        if not any(link.startswith(url) for link in links[:FIRST]):
            yield f'The search for {words!r} does not list {url} among its first results.'


def _open(browser: Browser, url: str, size: tuple[int, int] = DESKTOP) -> None:
    width, height = size
    metrics = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': size == PHONE}
    browser.cdp('Emulation.setDeviceMetricsOverride', **metrics)
    # Without this step, a new fragment would not load the page again.
    browser.driver.get('about:blank')
    browser.driver.get(url)


def _details(browser: Browser, size: tuple[int, int]) -> list[str]:
    """Return the problems of the layout, and open all parts that readers can open."""
    found: list[str] = []
    if size == PHONE:
        if browser.script(_TITLE_BOTTOM) > size[1] / 2:
            found.append('the title is not in the upper half of the screen')
        if browser.script(_IS_OPEN):
            found.append('the navigation is open')
        browser.find('#navigation > summary').send_keys('\n')
        if not browser.script(_IS_OPEN):
            found.append('the keyboard does not open the navigation')
    browser.script(_OPEN_ALL)
    return found + [f'it violates {rule}: {nodes}' for rule, nodes in browser.violations()]


def copies(browser: Browser) -> Iterator[str]:
    """Click all buttons that copy a block of the page, and yield the problems."""
    for index in range(browser.script(_BUTTONS)):
        script = _COPY.replace('INDEX', str(index))
        # Without a recent gesture of the user, the browser copies nothing.
        result = browser.cdp(
            'Runtime.evaluate', expression=script, userGesture=True, returnByValue=True
        )
        block, copied = result['result']['value']
        if copied != _commands(block):
            yield f'a button copies {copied!r} instead of {_commands(block)!r}'


def _commands(block: str) -> str:
    """Return what the button of a block copies."""
    lines = block.removesuffix('\n').split('\n')
    if any(line.startswith('$ ') for line in lines):
        lines = [line[2:] for line in lines if line.startswith(('$ ', '> '))]
    return '\n'.join(lines)


def _forms(browser: Browser) -> Iterator[str]:
    page = GUIDES / 'user' / 'guide-gpu.html'
    _open(browser, page.as_uri())
    browser.tab_to('.sd-tab-set > input')
    browser.press('\ue014')  # the right arrow
    # The same form is selected for all requests.
    selected = [label.strip() for label in browser.texts('.sd-tab-set > input:checked + label')]
    if set(selected) != {'curl'}:
        yield f'{page}: the keyboard does not select the form for curl'
    if browser.wait(_BUTTONS) <= len(selected):
        yield f'{page}: no button copies a block'


def _follow_moved(browser: Browser) -> None:
    """Open the anchors of the former page.

    :raises AssertionError: the browser does not display the section
    """
    for anchor, page in MOVED.items():
        _open(browser, f'{(REFERENCE / "index.html").as_uri()}#{anchor}')
        url = f'{(REFERENCE / page).as_uri()}#{anchor}'
        browser.wait('return location.href === arguments[0]', url)
        # The browser scrolls step by step.
        browser.wait(_IS_VISIBLE, anchor)


def main() -> int:
    """Check the pages; return 1 if there is a problem."""
    try:
        browser = Browser()
    except unittest.SkipTest as exc:
        print(f'The pages are not opened: {exc}.')
        return 0
    with contextlib.closing(browser):
        found = list(problems(browser))
    print(*found, f'{len(found)} problems of the pages', sep='\n')
    return int(bool(found))


if __name__ == '__main__':
    sys.exit(main())
