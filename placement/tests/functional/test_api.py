"""The API tests: one gabbi file of `gabbits/` is one arc of requests."""

import os
import unittest

from gabbi import driver

from placement.tests.functional.fixtures import gabbi_handlers, gabbits

TESTS_DIR = os.path.join(os.path.dirname(__file__), 'gabbits')


def load_tests(
    loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None
) -> unittest.TestSuite:
    """Make a suite of each file (the `load_tests` protocol of unittest)."""
    return driver.build_tests(
        TESTS_DIR,
        loader,
        intercept=lambda: gabbits.application,
        test_loader_name=__name__,
        fixture_module=gabbits,
        response_handlers=gabbi_handlers.gabbi_response_handlers,
    )
