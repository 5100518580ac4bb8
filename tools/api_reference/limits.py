"""The limits of values, in words."""

from collections.abc import Iterator

from placement.operations.operation import Schema
from placement.schemas import common


def limits(schema: Schema) -> Iterator[str]:
    """Yield the limits of a value. Each is the beginning of a sentence without its end."""
    if 'minimum' in schema or 'maximum' in schema:
        yield _range(schema.get('minimum'), schema.get('maximum'))
    if 'minLength' in schema or 'maxLength' in schema:
        yield _length(schema.get('minLength', 0), schema.get('maxLength'))
    pattern = schema.get('pattern')
    if pattern is not None and pattern not in common.UUID_PATTERNS:
        # JSON Schema has no \\Z.
        yield 'Pattern: `' + pattern.replace(r'\Z', '$') + '`'
    if schema.get('minItems') == 1 or schema.get('minProperties') == 1:
        yield 'Not empty'
    if schema.get('uniqueItems'):
        yield 'Without duplicates'
    for limit in limits(schema['items']) if schema.get('type') == 'array' else ():
        yield f'Each item: {limit[0].lower()}{limit[1:]}'


def _range(minimum: float | None, maximum: float | None) -> str:
    if maximum is None:
        return f'At least {minimum}'
    return f'At most {maximum}' if minimum is None else f'From {minimum} to {maximum}'


def _length(minimum: int, maximum: int | None) -> str:
    if maximum is None:
        return 'Not empty'
    if minimum == 0:
        return f'At most {maximum} characters'
    return f'{minimum} to {maximum} characters'
