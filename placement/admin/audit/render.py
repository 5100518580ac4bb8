"""The report, as a text or as a JSON document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
from typing import Any

from placement.admin import console
from placement.admin.audit import model
from placement.admin.console import Names

_COMMAND = 'placement-manage audit'
_NUMBERS = frozenset({'Count', 'Fixed', 'Used', 'Capacity', 'Total'})
# Values with the same title share a column, so that two UUIDs need less width.
_TITLES = {
    **dict.fromkeys(('project', 'user'), 'Project and user'),
    **dict.fromkeys(('root', 'true_root'), 'Root and true root'),
    **dict.fromkeys(('first_tree', 'last_tree'), 'First and last tree'),
    'resource_class': 'Class',
}


def document(findings: Iterable[model.Finding]) -> dict[str, Any]:
    """Return the report as a JSON document."""
    return {'findings': [dataclasses.asdict(one) for one in findings]}


def report(findings: Iterable[model.Finding], known: Names | None = None) -> str:
    """Return the verdict, the findings with their rows, errors first, and the next commands."""
    ordered = sorted(findings, key=lambda one: one.severity != model.ERROR)
    if not ordered:
        return 'The audit found nothing.'
    meanings = {code.name: code.meaning for code in model.CODES}
    codes = [(one.code, one.severity, one.count, one.fixed, meanings[one.code]) for one in ordered]
    titles = ('Code', 'Severity', 'Count', 'Fixed', 'Meaning')
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
    return ' and '.join(
        f'{number} {severity}{"s" * (number != 1)}' for severity, number in totals.items() if number
    )


def _details(finding: model.Finding, rows: Sequence[model.Row]) -> Iterator[str]:
    changed = [_change_cells(row) for row in rows if model.is_change(row)]
    left = [_cells(row) for row in rows if not model.is_change(row)]
    if changed:
        yield f'{finding.code}, changed rows:\n{_table(changed)}'
    if left:
        more = f'\nThe table shows {len(left)} of {finding.left} findings.'
        yield f'{finding.code}:\n{_table(left)}{more if len(left) < finding.left else ""}'


def _commands(findings: Iterable[model.Finding]) -> Iterator[str]:
    """Yield what the operator can execute next."""
    codes = {code.name: code for code in model.CODES}
    for finding in findings:
        code, rows = codes[finding.code], [row for row in finding.rows if not model.is_change(row)]
        if not finding.left:
            continue
        if code.fixes:
            only = '' if code.option == model.FIX else f' --only {code.name}'
            yield f'{_COMMAND} {code.option}{only}'
        elif code.command and rows:
            # A row without the UUID of a provider belongs to a provider that does not exist.
            with contextlib.suppress(KeyError):
                yield code.command.format_map(rows[0])


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    titles = list(dict.fromkeys(title for row in rows for title in row))
    cells = [[row.get(title, '-') for title in titles] for row in rows]
    return console.table(titles, cells, _NUMBERS)


def _cells(row: model.Row) -> dict[str, str]:
    """Return a cell for each name; the name and the UUID of a row share a cell."""
    cells: dict[str, str] = {}
    for key, value in row.items():
        name = key.removesuffix('_uuid').removesuffix('_id').removesuffix('_provider')
        title = _TITLES.get(name, name.replace('_', ' ').capitalize())
        text = f'id {_text(value)}' if key.endswith('_id') else _text(value)
        cells[title] = f'{cells[title]} {text}' if title in cells else text
    return cells


def _change_cells(row: model.Row) -> dict[str, str]:
    identity = {key: row[key] for key in row if key not in {'before', 'after'}}
    values = {'Row': identity, 'Before': row['before'], 'After': row['after']}
    return {title: _values(one) for title, one in values.items()}


def _values(row: model.Row | None) -> str:
    return '-' if row is None else ', '.join(f'{key}: {_text(row[key])}' for key in row)


def _text(value: Any) -> str:
    if value is None:
        return '-'
    return ', '.join(value) if isinstance(value, list) else str(value)
