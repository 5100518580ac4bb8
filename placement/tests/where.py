"""Where a test runs: decorators of test classes and test methods, each with the reason.

A functional test without a decorator is part of the gate (``tools/test.py``), on SQLite, on
MariaDB, and on PostgreSQL. On MySQL, the gate runs only the tests with `also_on_mysql`. The night
(``tools/test.py --night``) runs on MySQL what runs on MariaDB.
"""

from collections.abc import Callable, Iterator
import os
from typing import TypeVar
import unittest

from placement.tests import servers

# With the value `night`, the tests that are decorated with `at_night` run, too.
PROFILE = 'PLACEMENT_TEST_PROFILE'
_ON_MYSQL = 'runs_on_mysql'

Test = TypeVar('Test', bound=Callable[..., object])
Decorator = Callable[[Test], Test]


def only_on(*engines: str, reason: str) -> Decorator:
    """Return a decorator of tests that run only on these engines.

    :param engines: values of `servers.engine`
    """
    return unittest.skipUnless(servers.engine() in engines, reason)


def not_on(*engines: str, reason: str) -> Decorator:
    """Return a decorator of tests that do not run on these engines."""
    return unittest.skipIf(servers.engine() in engines, reason)


def at_night(reason: str) -> Decorator:
    """Return a decorator of tests that are not part of the gate."""
    return unittest.skipUnless(is_night(), reason)


def also_on_mysql(reason: str) -> Decorator:
    """Return a decorator of tests that are part of the gate on MySQL, too.

    :param reason: what MySQL decides otherwise than MariaDB
    """
    assert reason

    def mark(test: Test) -> Test:
        setattr(test, _ON_MYSQL, True)
        return test

    return mark


def is_night() -> bool:
    """Return whether this run contains the tests of the night."""
    return os.environ.get(PROFILE) == 'night'


def selected(suite: unittest.TestSuite) -> unittest.TestSuite:
    """Return the tests of a suite that run on the engine of this run."""
    if servers.engine() != 'mysql' or is_night():
        return suite
    return unittest.TestSuite(test for test in _tests(suite) if _is_on_mysql(test))


def _tests(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


def _is_on_mysql(test: unittest.TestCase) -> bool:
    name = test.id().rpartition('.')[2]
    failed_import = not type(test).__module__.startswith('placement')
    return failed_import or any(
        getattr(one, _ON_MYSQL, False) for one in (test, getattr(test, name, None))
    )
