"""The API tests: each gabbi file of `gabbits/` is one sequence of requests."""

import pathlib
import unittest
from unittest import mock

from gabbi import driver
import yaml

from placement.tests.functional.fixtures import gabbi_handlers, gabbits

TESTS_DIR = pathlib.Path(__file__).parent / 'gabbits'


def load_tests(
    loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None
) -> unittest.TestSuite:
    """Return a suite with a test case for each file (the `load_tests` protocol of unittest)."""
    # Each test process reads all files. With the parser in C, this takes half of the time.
    with mock.patch.object(yaml, 'SafeLoader', yaml.CSafeLoader):
        return driver.build_tests(
            str(TESTS_DIR),
            loader,
            intercept=lambda: gabbits.application,
            test_loader_name=__name__,
            fixture_module=gabbits,
            response_handlers=gabbi_handlers.gabbi_response_handlers,
        )
