"""Execute all checks, and format their results as a table or as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import threading
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code

from placement import messages
from placement.admin import tables
from placement.admin.preflight import configuration, database, identity, options, schema, settings
from placement.admin.preflight.model import REGISTERED, Check, Skipped, Verdict, collect, failure
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
# In the order of the table. The last one is the result of a check that was skipped.
RESULTS = {Code.FAILURE: 'failure', Code.WARNING: 'warning', Code.SUCCESS: 'ok', None: 'skipped'}
_TITLES = ('Check', 'Result', 'Details', 'What to do')

# A line of the report: the name of the check, and one of its verdicts.
Finding = tuple[str, Verdict]


def run(config: cfg.ConfigOpts, seconds: float = SECONDS) -> list[Finding]:
    """Run all checks, independently of failures, and return their findings in the same order.

    :param config: the parsed configuration
    :param seconds: the time limit of one check
    """
    options.register_libraries(config)
    verdicts: dict[str, Sequence[Verdict]] = {}
    for name, parts in CHECKS.items():
        verdicts[name] = _blocked(parts[0].needs, verdicts) or _limited(parts, config, seconds)
    return [(name, verdict) for name, listed in verdicts.items() for verdict in listed]


def _blocked(needed: str, verdicts: Mapping[str, Sequence[Verdict]]) -> Sequence[Verdict]:
    """Return the verdict `skipped` if the check that a check needs failed or was skipped."""
    for verdict in verdicts.get(needed, ()):
        if verdict.code is Code.FAILURE:
            return [Verdict(None, f'The check "{needed}" failed.')]
        if verdict.code is None:
            # The reason of the other check is the reason of this check, too.
            return [verdict]
    return []


def _limited(parts: Sequence[Check], config: cfg.ConfigOpts, seconds: float) -> Sequence[Verdict]:
    """Run a check in a thread, and do not wait for it after the time limit."""
    verdicts: list[Verdict] = []
    # At the end of the process, Python does not wait for the thread.
    thread = threading.Thread(target=lambda: verdicts.extend(_caught(parts, config)), daemon=True)
    thread.start()
    thread.join(seconds)
    late = f'The check did not end within {seconds:g} seconds.'
    return [*verdicts] or [failure(late, 'Check the network and the name resolution.')]


def _caught(parts: Sequence[Check], config: cfg.ConfigOpts) -> Sequence[Verdict]:
    try:
        with sources.explaining_references(config):
            return _verdicts(parts, config)
    except (cfg.ConfigSourceValueError, sources.UnresolvedReference):
        # That check names the option.
        return [Verdict(None, f'The check "{configuration.VALUES}" failed.')]
    except Skipped as reason:
        return [Verdict(None, str(reason))]
    except Exception as error:
        sentence = options.masked(messages.sentence(error), config)
        return [failure(f'The check failed: {sentence}', 'Correct the cause and run it again.')]


def _verdicts(parts: Sequence[Check], config: cfg.ConfigOpts) -> Sequence[Verdict]:
    if not parts[0].engines:
        return collect(parts[0].run(config))
    engine = database.database_url(config).get_backend_name()
    for part in parts:
        if engine in part.engines:
            with database.connected(config, as_service=part.as_service) as conn:
                return collect(part.run(config, conn))
    return [Verdict(None, f'The check does not apply to {database.TITLES[engine]}.')]


def status(findings: Iterable[Finding]) -> int:
    """Return the exit status of the command: 2 with failures, 1 with warnings, otherwise 0."""
    return max((verdict.code or Code.SUCCESS for _, verdict in findings), default=Code.SUCCESS)


def table(findings: Sequence[Finding], with_all: bool) -> str:
    """Return the verdict, and a table with a row for each finding.

    :param with_all: whether the table contains the checks that succeeded or were skipped
    """
    counts = Counter(verdict.code for _, verdict in findings)
    # The most important result is first.
    summary = ', '.join(
        f'{counts[code]} {result}{"s" if code and counts[code] > 1 else ""}'
        for code, result in RESULTS.items()
        if counts[code]
    )
    rows = [
        (name, result, verdict.detail, verdict.remedy)
        for code, result in RESULTS.items()
        for name, verdict in findings
        if verdict.code is code and (with_all or code)
    ]
    return f'{summary}\n\n{tables.table(_TITLES, rows, divider=True)}' if rows else summary


def document(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the report as a JSON document."""
    checks = [
        {'name': name, 'result': RESULTS[one.code], 'detail': one.detail, 'remedy': one.remedy}
        for name, one in findings
    ]
    return {'checks': checks}
