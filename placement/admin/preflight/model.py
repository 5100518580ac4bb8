"""The results of checks, and the decorator of the functions that are checks."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

# A check yields a verdict for each problem. If it yields nothing, the result is `ok`, with the
# returned text as its details.
Steps = Generator['Verdict', None, Any]
Run = Callable[..., Steps]


class Skipped(Exception):  # noqa: N818 - it is no error
    """The check does not apply or cannot be executed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check reports about one fact.

    :ivar result: `failure`, `warning`, `ok`, or `skipped`
    :ivar detail: what the check has read
    :ivar remedy: what the operator can do; empty if there is nothing to do
    """

    result: str
    detail: str
    remedy: str = ''


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the deployment, or the part of it for some database systems.

    :ivar run: has the parameters `config` and, if there are `engines`, `conn`
    :ivar needs: the name of an earlier check; if it fails or is skipped, this check is skipped
    :ivar engines: the SQLAlchemy dialects to which the check applies; without one, it does not use
        the database
    :ivar as_service: whether the connection has the session settings of the service
    """

    run: Run
    needs: str = ''
    engines: tuple[str, ...] = ()
    as_service: bool = False


# The checks by name. A check of several database systems has a function for each of them.
REGISTERED: dict[str, list[Check]] = {}


def check(
    name: str, engines: tuple[str, ...] = (), needs: str = '', as_service: bool = False
) -> Callable[[Run], Run]:
    """Return the decorator of a function that is a check; see `Check`.

    The docstring of the function is its description in the reference of the command. By default, a
    check that uses the database needs the check of the connection.
    """
    needs = needs or ('Database Connection' if engines else '')

    def register(function: Run) -> Run:
        REGISTERED.setdefault(name, []).append(Check(function, needs, engines, as_service))
        return function

    return register


def ok(detail: str) -> Verdict:
    """Return the verdict that there is nothing to do."""
    return Verdict('ok', detail)


def warning(detail: str, remedy: str) -> Verdict:
    """Return the verdict that the service works, but that the operator should act."""
    return Verdict('warning', detail, remedy)


def failure(detail: str, remedy: str) -> Verdict:
    """Return the verdict that the service does not start or does not work."""
    return Verdict('failure', detail, remedy)
