"""Count passed and failed checks."""

from typing import Any


class Checks:
    """Compares expected with actual values, and counts passed and failed checks."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def equal(self, title: str, expected: Any, actual: Any) -> None:
        """Compare an expected with an actual value, print the result, and count it."""
        if expected == actual:
            self.passed += 1
            print(f'ok    {title}: {actual}')
        else:
            self.failed += 1
            print(f'WRONG {title}: {actual!r} instead of {expected!r}')
