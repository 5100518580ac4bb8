"""The report as a text."""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
from typing import Any

from placement.admin import console
from placement.admin.audit import model
from placement.admin.console import Names

_NUMBERS = frozenset({'Count', 'Fixed', 'Used', 'Capacity', 'Total'})
# Values with the same title share a column, so that two UUIDs need less width.
_TITLES = {
    **dict.fromkeys(('project', 'user'), 'Project and user'),
    **dict.fromkeys(('root', 'true_root'), 'Root and true root'),
    **dict.fromkeys(('first_tree', 'last_tree'), 'First and last tree'),
    'resource_class': 'Class',
}


def report(findings: Iterable[model.Finding], known: Names | None = None) -> str:
    """Return the verdict, the findings with their rows, errors first, and the next commands."""
    ordered = sorted(findings, key=lambda one: one.severity != model.ERROR)
    if not ordered:
        return 'The audit found nothing.'
    titles = ('Code', 'Severity', 'Count', 'Fixed', 'Meaning')
    codes = [
        (one.code, one.severity, one.count, one.fixed, model.CODES[one.code].meaning)
        for one in ordered
    ]
    parts = [_verdict(ordered), console.table(titles, codes, _NUMBERS)]
    for finding in ordered:
        parts += _details(finding, (known or Names()).in_values(finding.rows))
    if commands := list(dict.fromkeys(_commands(ordered))):
        parts.append('\n    '.join(('Next:', *commands)))
    return '\n\n'.join(parts)


def _verdict(findings: Sequence[model.Finding]) -> str:
    fixed = sum(one.fixed for one in findings)
    left = _counted((one.severity, one.left) for one in findings)
    text = f'The audit found {_counted((one.severity, one.count) for one in findings)}.'
    if fixed:
        text += f' It corrected {fixed}, and leaves {left or "none"}.'
    if not left:
        return console.colored(text, 'green')
    return console.colored(text, 'red' if model.ERROR in left else 'yellow')


def _counted(numbers: Iterable[tuple[str, int]]) -> str:
    """Return the numbers of errors and notices in words; an empty text if there are none."""
    totals = {model.ERROR: 0, model.NOTICE: 0}
    for severity, number in numbers:
        totals[severity] += number
    return ' and '.join(console.count(total, name) for name, total in totals.items() if total)


def _details(finding: model.Finding, rows: Sequence[model.Row]) -> Iterator[str]:
    if changes := [_with_identity(row) for row in rows if model.is_change(row)]:
        yield f'{finding.code}, changed rows:\n{_table(changes)}'
    if left := [row for row in rows if not model.is_change(row)]:
        more = f'\nThe table shows {len(left)} of {finding.left} findings.'
        yield f'{finding.code}:\n{_table(left)}{more if len(left) < finding.left else ""}'


def _commands(findings: Iterable[model.Finding]) -> Iterator[str]:
    """Yield what the operator can execute next, with the values of the first row that is left."""
    for finding in findings:
        code = model.CODES[finding.code]
        command = code.command or ('placement-manage audit --fix' if code.fixes else '')
        row = next((row for row in finding.rows if not model.is_change(row)), None)
        if command and row is not None:
            # A row without the UUID of a provider belongs to a provider that does not exist.
            with contextlib.suppress(KeyError):
                yield command.format_map(row)


def _with_identity(change: model.Row) -> model.Row:
    """Return a changed row with all values that identify it in one."""
    values = {key: change[key] for key in ('before', 'after')}
    return {'row': {key: change[key] for key in change if key not in values}, **values}


def _table(rows: Sequence[model.Row]) -> str:
    cells = list(map(_cells, rows))
    titles = list(dict.fromkeys(title for row in cells for title in row))
    lines = [[row.get(title, '-') for title in titles] for row in cells]
    return console.table(titles, lines, _NUMBERS)


def _cells(row: model.Row) -> dict[str, str]:
    """Return a cell for each name; the name and the UUID of a row share a cell."""
    cells: dict[str, str] = {}
    for key, value in row.items():
        name = key.removesuffix('_uuid').removesuffix('_id').removesuffix('_provider')
        title = _TITLES.get(name, name.replace('_', ' ').capitalize())
        text = f'id {_text(value)}' if key.endswith('_id') else _text(value)
        cells[title] = f'{cells[title]} {text}' if title in cells else text
    return cells


def _text(value: Any) -> str:
    if value is None:
        return '-'
    if isinstance(value, dict):
        value = [f'{key}: {_text(one)}' for key, one in value.items()]
    return ', '.join(value) if isinstance(value, list) else str(value)
