"""Execute all checks, and format their results as a table."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
import threading

from oslo_config import cfg

from placement import messages
from placement.admin import console
from placement.admin.preflight import configuration, database, identity, schema, settings
from placement.admin.preflight.model import REGISTERED, Check, Skipped, Steps, Verdict, failure, ok
from placement.conf import sources

# The checks by name, in the order of the report.
CHECKS = {
    name: parts
    for module in (configuration, database, settings, schema, identity)
    for name, parts in REGISTERED.items()
    if parts[0].run.__module__ == module.__name__
}
# In seconds. The connections have shorter limits, but name resolution, for example, has none.
SECONDS = 30.0
# The results with their exit status, in the order of the table.
RESULTS = {'failure': 2, 'warning': 1, 'ok': 0, 'skipped': 0}
_TITLES = ('Check', 'Result', 'Details', 'What to do')

# An element of the JSON document: the name of a check, and one of its verdicts.
Finding = dict[str, str]


def run(config: cfg.ConfigOpts, seconds: float = SECONDS) -> list[Finding]:
    """Run all checks, independently of failures, and return their findings in the same order.

    :param config: the parsed configuration
    :param seconds: the time limit of one check
    """
    configuration.register_libraries(config)
    verdicts: dict[str, Sequence[Verdict]] = {}
    for name, parts in CHECKS.items():
        verdicts[name] = _blocked(parts[0].needs, verdicts) or _limited(parts, config, seconds)
    return [{'name': name, **asdict(one)} for name, listed in verdicts.items() for one in listed]


def _blocked(needed: str, verdicts: Mapping[str, Sequence[Verdict]]) -> Sequence[Verdict]:
    """Return the verdict `skipped` if the check that a check needs failed or was skipped."""
    for verdict in verdicts.get(needed, ()):
        if verdict.result == 'failure':
            return [Verdict('skipped', f'The check "{needed}" failed.')]
        if verdict.result == 'skipped':
            # The reason of the other check is the reason of this check, too.
            return [verdict]
    return []


def _limited(parts: Sequence[Check], config: cfg.ConfigOpts, seconds: float) -> Sequence[Verdict]:
    """Run a check in a thread, and do not wait for it after the time limit."""
    verdicts: list[Verdict] = []
    # At the end of the process, Python does not wait for the thread.
    thread = threading.Thread(
        target=lambda: verdicts.extend(collect(_steps(parts, config), config)), daemon=True
    )
    thread.start()
    thread.join(seconds)
    late = f'The check did not end within {seconds:g} seconds.'
    return [*verdicts] or [failure(late, 'Check the network and the name resolution.')]


def _steps(parts: Sequence[Check], config: cfg.ConfigOpts) -> Steps:
    """Execute the part of a check that applies to the database system."""
    with sources.explaining_references(config):
        if not parts[0].engines:
            return (yield from parts[0].run(config))
        engine = database.database_url(config).get_backend_name()
        for part in parts:
            if engine in part.engines:
                with database.connected(config, as_service=part.as_service) as conn:
                    return (yield from part.run(config, conn))
        raise Skipped(f'The check does not apply to {database.TITLES[engine]}.')


def collect(steps: Steps, config: cfg.ConfigOpts) -> Sequence[Verdict]:
    """Execute a check. Return what it yields or, if that is nothing, the result `ok`.

    The message of an exception is the last verdict.
    """
    verdicts: list[Verdict] = []
    try:
        while True:
            verdicts.append(next(steps))
    except StopIteration as end:
        return verdicts or [ok(end.value)]
    except (cfg.ConfigSourceValueError, sources.UnresolvedReference):
        # That check names the option.
        last = Verdict('skipped', f'The check "{configuration.VALUES}" failed.')
    except Skipped as reason:
        last = Verdict('skipped', str(reason))
    except Exception as error:
        sentence = configuration.masked(messages.sentence(error), config)
        problem, _, remedy = sentence.partition('. ')
        last = failure(f'{problem.rstrip(".")}.', remedy or 'Correct the cause and run it again.')
    return [*verdicts, last]


def status(findings: Iterable[Finding]) -> int:
    """Return the exit status of the command: 2 with failures, 1 with warnings, otherwise 0."""
    return max(RESULTS[one['result']] for one in findings)


def table(findings: Sequence[Finding], with_all: bool) -> str:
    """Return the verdict, and a table with a row for each finding.

    :param with_all: whether the table contains the checks that succeeded or were skipped
    """
    counts = Counter(one['result'] for one in findings)
    # The most important result is first.
    summary = ', '.join(
        f'{counts[result]} {result}{"s" if exit_status and counts[result] > 1 else ""}'
        for result, exit_status in RESULTS.items()
        if counts[result]
    )
    rows = [
        tuple(one.values())
        for result, exit_status in RESULTS.items()
        for one in findings
        if one['result'] == result and (with_all or exit_status)
    ]
    return f'{summary}\n\n{console.table(_TITLES, rows, divider=True)}' if rows else summary
