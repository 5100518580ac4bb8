"""The results of checks, and the decorator of the functions that are checks."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
import functools
from typing import Any

# A check yields a verdict for each problem. If it yields nothing, the result is `ok`, and the
# returned text, if there is one, contains the details.
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
    """A check of the deployment.

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


# The checks by name, in the order of the report.
CHECKS: dict[str, Check] = {}


def check(
    name: str, engines: tuple[str, ...] = (), needs: str = '', as_service: bool = False
) -> Callable[[Run], Run]:
    """Return the decorator of a function that is a check; see `Check`.

    The docstring of the function is its description in the reference of the command. By default, a
    check that uses the database needs the check of the connection.
    """
    needs = needs or ('Database Connection' if engines else '')

    def register(function: Run) -> Run:
        CHECKS[name] = Check(function, needs, engines, as_service)
        return function

    return register


# Verdicts: there is nothing to do; the service works, but the operator should act; the service does
# not start, or does not work.
ok = functools.partial(Verdict, 'ok')
warning = functools.partial(Verdict, 'warning')
failure = functools.partial(Verdict, 'failure')
