"""Execute all checks, and format their results as a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
import threading

from oslo_config import cfg

from placement import messages
from placement.admin import console
from placement.admin.preflight import configuration, database, identity
from placement.admin.preflight.model import CHECKS, Check, Skipped, Steps, Verdict, failure, ok
from placement.conf import sources

# In seconds. The connections have shorter limits, but name resolution, for example, has none.
SECONDS = 30.0
# The results with their exit status, in the order of the table.
RESULTS = {'failure': 2, 'warning': 1, 'ok': 0, 'skipped': 0}
_TITLES = ('Check', 'Result', 'Details', 'What to do')


def run(config: cfg.ConfigOpts, seconds: float = SECONDS) -> list[dict[str, str]]:
    """Run all checks, independently of failures, and return their findings in the same order.

    A finding is an element of the JSON document: the name of a check, and one of its verdicts.

    :param config: the parsed configuration
    :param seconds: the time limit of one check
    """
    identity.register_libraries(config)
    verdicts: dict[str, Sequence[Verdict]] = {}
    for name, one in CHECKS.items():
        verdicts[name] = _blocked(one.needs, verdicts) or _limited(one, config, seconds)
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


def _limited(check: Check, config: cfg.ConfigOpts, seconds: float) -> Sequence[Verdict]:
    """Run a check in a thread, and do not wait for it after the time limit."""
    verdicts: list[Verdict] = []
    # At the end of the process, Python does not wait for the thread.
    thread = threading.Thread(
        target=lambda: verdicts.extend(collect(_steps(check, config), config)), daemon=True
    )
    thread.start()
    thread.join(seconds)
    late = f'The check did not end within {seconds:g} seconds.'
    return [*verdicts] or [failure(late, 'Check the network and the name resolution.')]


def _steps(check: Check, config: cfg.ConfigOpts) -> Steps:
    """Execute a check if it applies to the database system."""
    with sources.explaining_references(config):
        if not check.engines:
            return (yield from check.run(config))
        engine = database.database_url(config).get_backend_name()
        if engine not in check.engines:
            raise Skipped(f'The check does not apply to {database.TITLES[engine]}.')
        with database.connected(config, check.as_service) as conn:
            return (yield from check.run(config, conn))


def collect(steps: Steps, config: cfg.ConfigOpts) -> Sequence[Verdict]:
    """Execute a check. Return what it yields or, if that is nothing, the result `ok`.

    The message of an exception is the last verdict.
    """
    verdicts: list[Verdict] = []
    try:
        while True:
            verdicts.append(next(steps))
    except StopIteration as end:
        return verdicts or [ok(end.value or 'The check found no problem.')]
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


def table(findings: Sequence[dict[str, str]], with_all: bool) -> str:
    """Return the verdict, and a table with a row for each finding.

    :param with_all: whether the table contains the checks that succeeded or were skipped
    """
    # The most important result is first.
    ranked = sorted(findings, key=lambda one: list(RESULTS).index(one['result']))
    summary = ', '.join(
        console.count(number, result) if RESULTS[result] else f'{number} {result}'
        for result, number in Counter(one['result'] for one in ranked).items()
    )
    rows = [tuple(one.values()) for one in ranked if with_all or RESULTS[one['result']]]
    return f'{summary}\n\n{console.table(_TITLES, rows, divider=True)}' if rows else summary
