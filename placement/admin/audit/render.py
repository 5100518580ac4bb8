"""The report, as tables or as a JSON document."""

from collections.abc import Iterable, Sequence
from typing import Any

from placement.admin import tables
from placement.admin.audit.model import CODES, Finding, Row

NOTHING = 'The audit found nothing.'

_NUMBERS = frozenset({'Count', 'Fixed', 'Used', 'Capacity', 'Total'})
# Values with the same title share a column, so that two UUIDs need less width.
_TITLES = {
    'project': 'Project and user',
    'user': 'Project and user',
    'root': 'Root and true root',
    'true_root': 'Root and true root',
    'first_tree': 'First and last tree',
    'last_tree': 'First and last tree',
    'resource_class': 'Class',
}
_MEANINGS = {code.name: code.meaning for code in CODES}


def document(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the report as a JSON document."""
    return {
        'findings': [
            {
                'code': finding.code,
                'severity': finding.severity,
                'count': finding.count,
                'fixed': finding.fixed,
                'rows': list(finding.rows),
            }
            for finding in findings
        ]
    }


def report(findings: Sequence[Finding]) -> str:
    """Return the report as a table of the findings, and tables of the rows of each finding."""
    if not findings:
        return NOTHING
    rows = [
        (finding.code, finding.severity, finding.count, finding.fixed, _MEANINGS[finding.code])
        for finding in findings
    ]
    titles = ('Code', 'Severity', 'Count', 'Fixed', 'Meaning')
    parts = [tables.table(titles, rows, _NUMBERS)]
    for finding in findings:
        parts += _details(finding)
    return '\n\n'.join(parts)


def _details(finding: Finding) -> list[str]:
    changed = [row for row in finding.rows if _is_change(row)]
    left = [row for row in finding.rows if not _is_change(row)]
    parts = []
    if changed:
        parts.append(f'{finding.code}, changed rows:\n{_changes(changed)}')
    if left:
        missing = finding.left - len(left)
        more = f'\nThe table shows {len(left)} of {finding.left} findings.' if missing > 0 else ''
        parts.append(f'{finding.code}:\n{_findings(left)}{more}')
    return parts


def _is_change(row: Row) -> bool:
    return 'before' in row


def _changes(rows: Iterable[Row]) -> str:
    titles = ('Row', 'Before', 'After')
    cells = [
        (
            _values({key: row[key] for key in row.keys() - {'before', 'after'}}, row),
            _values(row['before'], row['before']),
            _values(row['after'], row['after']),
        )
        for row in rows
    ]
    return tables.table(titles, cells)


def _values(row: Row | None, order: Row | None) -> str:
    if row is None or order is None:
        return '-'
    return ', '.join(f'{key}: {_text(row[key])}' for key in order if key in row)


def _findings(rows: Iterable[Row]) -> str:
    """Return a table with a column for each name; the name and the UUID of a row share a column."""
    cells: list[dict[str, str]] = []
    for row in rows:
        cells.append({})
        for key, value in row.items():
            title, text = _cell(key, value)
            before = cells[-1].get(title)
            cells[-1][title] = text if before is None else f'{before} {text}'
    titles = list(dict.fromkeys(title for row in cells for title in row))
    return tables.table(
        titles, [[row.get(title, '-') for title in titles] for row in cells], _NUMBERS
    )


def _cell(key: str, value: Any) -> tuple[str, str]:
    """Return the title of the column and the text for a value of a row."""
    text = _text(value)
    if key.endswith('_id'):
        text = f'id {text}'
    name = key.removesuffix('_uuid').removesuffix('_id').removesuffix('_provider')
    return _TITLES.get(name, name.replace('_', ' ').capitalize()), text


def _text(value: Any) -> str:
    if value is None:
        return '-'
    return ', '.join(value) if isinstance(value, list) else str(value)
