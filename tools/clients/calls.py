"""Calls of the public functions of a client, which must be complete."""

from collections.abc import Iterable
from typing import Any


class MismatchError(Exception):
    """A function of a client was not called, or returned something unexpected."""


class Calls:
    """Remembers which functions of an object were called.

    :param target: the object with the functions
    """

    def __init__(self, target: Any) -> None:
        self._target = target
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        """Return a function of the object, and remember its name."""
        function = getattr(self._target, name)
        self.called.add(name)
        return function

    def has(self, name: str) -> bool:
        """Return whether the object has a function. Functions are missing in older releases."""
        return hasattr(self._target, name)

    def require_all(self, excluded: Iterable[str] = ()) -> None:
        """Require that all public functions that the class of the object defines were called.

        :raises MismatchError: a function was not called
        """
        functions = {name for name, value in vars(type(self._target)).items() if callable(value)}
        public = {name for name in functions if not name.startswith('_')}
        if missing := public - self.called - set(excluded):
            raise MismatchError(f'these functions were not called: {sorted(missing)}')


def require(condition: bool, message: str) -> None:
    """Raise an error if a condition does not apply.

    :raises MismatchError: the condition does not apply
    """
    if not condition:
        raise MismatchError(message)
