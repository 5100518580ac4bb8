"""The report, as a table or as JSON."""

from collections import Counter
from collections.abc import Sequence
import json

from placement.admin import tables
from placement.admin.preflight.model import Finding, Result

TITLES = ('Check', 'Result', 'Details', 'What to do')
# In the order of the table.
_ALWAYS = (Result.FAILURE, Result.WARNING)
_ON_REQUEST = (Result.OK, Result.SKIPPED)


def table(findings: Sequence[Finding], with_all: bool) -> str:
    """Return the verdict, and a table with a row for each finding.

    :param with_all: whether the table contains the checks that succeeded or were skipped
    """
    shown = [*_ALWAYS, *(_ON_REQUEST if with_all else ())]
    rows = [
        (one.name, one.verdict.result, one.verdict.detail, one.verdict.remedy)
        for result in shown
        for one in findings
        if one.verdict.result is result
    ]
    parts = [summary(findings)]
    if rows:
        parts.append(tables.table(TITLES, rows, divider=True))
    return '\n\n'.join(parts)


def summary(findings: Sequence[Finding]) -> str:
    """Return the number of findings with each result, the most important one first."""
    counts = Counter(finding.verdict.result for finding in findings)
    parts = []
    for result in (*_ALWAYS, *_ON_REQUEST):
        plural = 's' if result in _ALWAYS and counts[result] > 1 else ''
        if counts[result]:
            parts.append(f'{counts[result]} {result}{plural}')
    return ', '.join(parts)


def document(findings: Sequence[Finding]) -> str:
    """Return the report as a JSON document in one line."""
    checks = [
        {
            'name': finding.name,
            'result': str(finding.verdict.result),
            'detail': finding.verdict.detail,
            'remedy': finding.verdict.remedy,
        }
        for finding in findings
    ]
    return json.dumps({'checks': checks})
