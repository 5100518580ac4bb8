"""The functional tests. PLACEMENT_TEST_PART selects one part of them; see `PARTS`.

Each part has a process and a server of its own. `placement.tests.where` says on which database a
test runs.
"""

import os
from pathlib import Path
import unittest

from placement.tests import where

PART = 'PLACEMENT_TEST_PART'
# The parts take about as long as each other. A name is the beginning of the names of modules below
# this package.
PARTS = {
    'web': ('deployment', 'log', 'openapi', 'report', 'web'),
    'programs': ('cmd', 'mistakes'),
    'database': ('admin', 'db', 'faults'),
    'searches': ('candidates', 'objects', 'test_statement'),
    'races': ('collations', 'races', 'test_fuzz', 'test_generat', 'test_invalid'),
    'all': ('',),
}
# All modules that are in no other part.
OTHERS = 'others'
# These tests start servers of their own. stestr runs them if its --test-path names their directory.
EXCLUDED = ('deployers', 'galera', 'group_replication')
_FOLDER = Path(__file__).parent


def load_tests(
    loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None
) -> unittest.TestSuite:
    """Return the tests of the selected part (the `load_tests` protocol of unittest).

    Only the modules of these tests are imported.
    """
    tests.addTest(loader.loadTestsFromNames(modules(os.environ.get(PART, 'all'))))
    return where.selected(tests)


def modules(part: str) -> list[str]:
    """Return the names of the modules of a part.

    :param part: a key of `PARTS`, or `OTHERS`
    """
    names = [
        '.'.join(path.relative_to(_FOLDER).with_suffix('').parts)
        for path in sorted(_FOLDER.rglob('test_*.py'))
    ]
    if part != OTHERS:
        chosen = [name for name in names if name.startswith(PARTS[part])]
    else:
        others = tuple(name for key, some in PARTS.items() if key != 'all' for name in some)
        chosen = [name for name in names if not name.startswith(others)]
    return [f'{__name__}.{name}' for name in chosen if not name.startswith(EXCLUDED)]
