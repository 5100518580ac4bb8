"""Waits for the effects of other threads and processes."""

from collections.abc import Callable
import time


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until a condition is true.

    :raises AssertionError: the condition is still false after that many seconds
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'a condition is false after {seconds} seconds')
        time.sleep(0.002)
