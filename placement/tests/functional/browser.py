"""Chromium, which opens a page like a reader of the page, and the base class of such tests."""

import atexit
import base64
from collections.abc import Sequence
import functools
import json
import logging
from pathlib import Path
import tempfile
from typing import Any

from axe_core_python.selenium import Axe
from oslotest import base
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from placement.tests import where
from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST, wait_until

# The width and the height of the window in CSS pixels.
DESKTOP, PHONE = (1280, 900), (390, 844)
_OPTIONS = (
    '--headless=new',
    # Chromium refuses to start as root with its sandbox. It opens only files of the test.
    '--no-sandbox',
    '--disable-gpu',
    '--disable-lcd-text',
    '--disable-dev-shm-usage',
    '--force-device-scale-factor=1',
    '--hide-scrollbars',
)


class _Service(Service):
    """ChromeDriver, for which Selenium would wait at most half a minute."""

    def start(self) -> None:
        """Start ChromeDriver and wait until it accepts connections."""
        self._start_process(self._path)

        def responds() -> bool:
            self.assert_process_still_running()
            return self.is_connectable()

        wait_until(responds, 'ChromeDriver does not respond')


class Browser:
    """A browser without a window; skips the test if Chromium is not installed."""

    def __init__(self) -> None:
        for library in ('selenium', 'urllib3'):
            logging.getLogger(library).setLevel(logging.WARNING)
        options = webdriver.ChromeOptions()
        options.binary_location = commands.program('chromium')
        for option in _OPTIONS:
            options.add_argument(option)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
        service = _Service(commands.program('chromedriver'))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(LONGEST)
        self.axe = Axe()

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()

    def open(
        self, page: Path, size: tuple[int, int] = DESKTOP, dark: bool = False, fragment: str = ''
    ) -> None:
        """Open a file and wait until it is usable.

        :param size: the width and the height of the window
        :param dark: whether the system of the reader has a dark theme
        """
        width, height = size
        self.cdp(
            'Emulation.setDeviceMetricsOverride',
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=size == PHONE,
        )
        theme = {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}
        still = {'name': 'prefers-reduced-motion', 'value': 'reduce'}
        self.cdp('Emulation.setEmulatedMedia', features=[theme, still])
        # Without this step, a new fragment would not load the page again.
        self.driver.get('about:blank')
        self.messages()
        self.requests()
        self.driver.get(page.as_uri() + fragment)
        self.wait('return performance.getEntriesByName("usable").length')

    def cdp(self, command: str, **parameters: Any) -> Any:
        """Execute a command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(command, parameters)

    def script(self, text: str, *arguments: Any) -> Any:
        """Return the result of a script."""
        return self.driver.execute_script(text, *arguments)

    def runs_inline_scripts(self) -> bool:
        """Add an inline script to the page, and return whether it runs."""
        return self.script(
            'const script = document.createElement("script");'
            'script.textContent = "window.executed = true";'
            'document.body.append(script);'
            'return window.executed === true'
        )

    def wait(self, condition: str, *arguments: Any) -> Any:
        """Return the result of a script as soon as it is true."""
        result = None

        def is_true() -> bool:
            nonlocal result
            result = self.script(condition, *arguments)
            return bool(result)

        wait_until(is_true, f'{condition} is not true')
        return result

    def find(self, selector: str) -> WebElement:
        """Return the first element that a CSS selector selects."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a CSS selector selects."""
        return self.script(
            'return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)',
            selector,
        )

    def button(self, text: str, within: str = 'body') -> WebElement:
        """Return the first button with a text."""
        return self.script(
            'return [...document.querySelector(arguments[1]).querySelectorAll("button")]'
            '.find((one) => one.textContent.trim() === arguments[0])',
            text,
            within,
        )

    def press(self, *keys: str) -> None:
        """Press keys, one after the other; the focused element receives them."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def tab_to(self, selector: str) -> None:
        """Press the tabulator until an element that a CSS selector selects has the focus."""
        for _ in range(200):
            self.press(Keys.TAB)
            if self.script('return document.activeElement.matches(arguments[0])', selector):
                return
        raise AssertionError(f'The tabulator does not reach {selector}')

    def focused(self) -> str:
        """Return the text of the focused element."""
        return self.script('return document.activeElement.textContent.trim()')

    def violations(self) -> list[tuple[str, Sequence[str]]]:
        """Return what axe-core finds: the rule, and the elements that violate it."""
        # For other results, axe-core would take seconds to describe thousands of elements.
        found = self.axe.run(self.driver, options={'resultTypes': ['violations']})['violations']
        return [(one['id'], [node['html'] for node in one['nodes']]) for one in found]

    def messages(self) -> list[str]:
        """Return the messages on the console since the last call."""
        return [entry['message'] for entry in self.driver.get_log('browser')]

    def requests(self) -> list[str]:
        """Return the URLs that the page requested since the last call."""
        events = [json.loads(entry['message'])['message'] for entry in self.logged('performance')]
        return [
            event['params']['request']['url']
            for event in events
            if event['method'] == 'Network.requestWillBeSent'
        ]

    def logged(self, kind: str) -> list[dict[str, Any]]:
        """Return the entries of a log since the last call."""
        return self.driver.get_log(kind)

    def screenshot(self) -> bytes:
        """Return the visible part of the page as PNG."""
        return base64.b64decode(self.cdp('Page.captureScreenshot', format='png')['data'])

    def pdf(self) -> bytes:
        """Return the printed page."""
        return base64.b64decode(self.cdp('Page.printToPDF')['data'])


@functools.cache
def shared() -> Browser:
    """Return the browser of all tests of this process; skip the test if there is none."""
    browser = Browser()
    atexit.register(browser.close)
    return browser


@where.at_night('Chromium takes minutes.')
@where.only_on('sqlite', reason='The page does not depend on the database.')
class PageTestCase(base.BaseTestCase):
    """Opens pages in a browser.

    :cvar folder: a temporary directory for the pages
    """

    browser: Browser
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.browser = shared()
        folder = tempfile.TemporaryDirectory(prefix='placement-page-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
