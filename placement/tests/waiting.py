"""Waits for the effects of other threads and processes."""

from collections.abc import Callable
import time

# The seconds after which a test fails instead of waiting. They are many times those that any test
# needs, so that no test fails because the machine is busy.
LONGEST = 300


def wait_until(condition: Callable[[], object], failure: str = 'the condition is false') -> None:
    """Wait until a condition is true.

    :raises AssertionError: the condition is still false after a long time; the message begins with
        `failure`
    """
    deadline = time.monotonic() + LONGEST
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'{failure}, after {LONGEST} seconds')
        time.sleep(0.005)
