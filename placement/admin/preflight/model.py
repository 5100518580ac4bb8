"""The results of checks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
import enum

from oslo_config import cfg


class Result(enum.StrEnum):
    """The result of a check."""

    OK = 'ok'
    WARNING = 'warning'
    FAILURE = 'failure'
    SKIPPED = 'skipped'


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check reports about one fact.

    :param detail: what the check has read
    :param remedy: what the operator can do; empty if there is nothing to do
    """

    result: Result
    detail: str
    remedy: str = ''


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the deployment.

    :param name: the name in the report, which is unique
    :param run: reads the facts and returns at least one verdict
    :param needs: the names of earlier checks; if one of them fails or is skipped, this check is
        skipped
    """

    name: str
    run: Callable[[cfg.ConfigOpts], Sequence[Verdict]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: a verdict of the check with a name."""

    name: str
    verdict: Verdict


def ok(detail: str) -> Verdict:
    """Return the verdict that there is nothing to do."""
    return Verdict(Result.OK, detail)


def warning(detail: str, remedy: str) -> Verdict:
    """Return the verdict that the service works, but that the operator should act."""
    return Verdict(Result.WARNING, detail, remedy)


def failure(detail: str, remedy: str) -> Verdict:
    """Return the verdict that the service does not start or does not work."""
    return Verdict(Result.FAILURE, detail, remedy)


def skipped(reason: str) -> Verdict:
    """Return the verdict that the check does not apply or cannot run."""
    return Verdict(Result.SKIPPED, reason)


def exit_status(findings: Iterable[Finding]) -> int:
    """Return the exit status of the command: 2 with failures, 1 with warnings, otherwise 0."""
    results = {finding.verdict.result for finding in findings}
    if Result.FAILURE in results:
        return 2
    return int(Result.WARNING in results)
