"""The report, as a table or as JSON."""

from collections.abc import Sequence
import json
import textwrap

import prettytable

from placement.admin.preflight.model import Finding

TITLES = ['Check', 'Result', 'Details', 'What to do']
# In characters. The table fits into a terminal with 120 columns.
_NAME, _DETAIL, _REMEDY = 24, 43, 31


def table(findings: Sequence[Finding]) -> str:
    """Return the report as a table with a row for each finding."""
    rows = prettytable.PrettyTable(TITLES, align='l')
    for finding in findings:
        verdict = finding.verdict
        rows.add_row(
            [
                _wrapped(finding.name, _NAME),
                str(verdict.result),
                _wrapped(verdict.detail, _DETAIL),
                _wrapped(verdict.remedy, _REMEDY),
            ],
            divider=True,
        )
    return str(rows.get_string())


def _wrapped(text: str, width: int) -> str:
    return '\n'.join(textwrap.wrap(text, width, break_on_hyphens=False))


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
