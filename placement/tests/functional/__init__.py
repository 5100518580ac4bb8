"""The functional tests. PLACEMENT_TEST_SELECTION selects some of them; see tools/selection.py."""

import os
from pathlib import Path
import unittest

SELECTION = 'PLACEMENT_TEST_SELECTION'


def load_tests(
    loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None
) -> unittest.TestSuite:
    """Return the selected tests (the `load_tests` protocol of unittest).

    Only the modules of these tests are imported.
    """
    name = os.environ.get(SELECTION)
    if name is None:
        tests.addTest(loader.discover(str(Path(__file__).parent), pattern or 'test*.py'))
        return tests
    from testtools.testsuite import filter_by_ids

    from tools import selection

    selected = selection.named(name)
    tests.addTest(loader.loadTestsFromNames(list(selected.modules())))
    return filter_by_ids(tests, selected)
