"""Run checks: one after the other, each within a time limit, and independently of failures."""

from collections.abc import Iterable, Mapping, Sequence
import threading

from oslo_config import cfg

from placement.admin.preflight import masking, options
from placement.admin.preflight.model import Check, Finding, Result, Verdict, failure, skipped
from placement.conf import sources

# In seconds. The connections have shorter limits, but name resolution, for example, has none.
SECONDS = 30.0


def run(config: cfg.ConfigOpts, checks: Iterable[Check], seconds: float = SECONDS) -> list[Finding]:
    """Run all checks and return their findings in the same order.

    :param config: the parsed configuration
    :param seconds: the time limit of one check
    """
    options.register_libraries(config)
    verdicts: dict[str, Sequence[Verdict]] = {}
    for check in checks:
        reason = reason_to_skip(check, verdicts)
        verdicts[check.name] = (
            _limited(check, config, seconds) if reason is None else [skipped(reason)]
        )
    return [Finding(name, verdict) for name, listed in verdicts.items() for verdict in listed]


def reason_to_skip(check: Check, verdicts: Mapping[str, Sequence[Verdict]]) -> str | None:
    """Return why a check is skipped; None if all checks that it needs were executed and passed."""
    for needed in check.needs:
        results = {verdict.result for verdict in verdicts[needed]}
        if Result.FAILURE in results:
            return f'The check "{needed}" failed.'
        if Result.SKIPPED in results:
            # The reason of the other check is the reason of this check, too.
            return verdicts[needed][0].detail
    return None


def _limited(check: Check, config: cfg.ConfigOpts, seconds: float) -> Sequence[Verdict]:
    """Run a check in a thread, and do not wait for it after the time limit."""
    verdicts: list[Verdict] = []

    def work() -> None:
        verdicts.extend(_caught(check, config))

    # At the end of the process, Python does not wait for the thread.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return list(verdicts) or [
        failure(
            f'The check did not end within {seconds:g} seconds.',
            'Check the network and the name resolution.',
        )
    ]


def _caught(check: Check, config: cfg.ConfigOpts) -> Sequence[Verdict]:
    try:
        with sources.explaining_references(config):
            return check.run(config)
    except Exception as error:
        sentence = masking.sentence(error, config)
        return [failure(f'The check failed: {sentence}', 'Correct the cause and run it again.')]
