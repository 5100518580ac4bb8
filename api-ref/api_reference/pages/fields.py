"""The fields of JSON documents whose schema differs by microversion.

The API reference has one row for each form of a field. `rows` derives these rows from the schemas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
import re

from api_reference.parameters import UUID_PATTERNS
from placement.microversion import MAX_VERSION, Version
from placement.schemas import Schema

# What the description of an object states about its keys -> the name of a key in the reference.
KEYS = {
    'names of resource classes': 'resource_class',
    'UUIDs of resource providers': 'provider_uuid',
    'UUIDs of consumers': 'consumer_uuid',
    'consumer types': 'consumer_type',
    'suffixes of request groups': 'suffix',
}
_KEYS = re.compile(r'\bkeys\b[^.;]*? are ([^.;]+)')

# The name of a document that is not an object.
BODY = '(body)'


class UndescribedKeysError(ValueError):
    """The description of an object does not state what its keys are."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of parameters.

    :ivar required: `yes`, `no`, or the microversions in which the field is required
    :ivar since: the first microversion with the field in this form
    :ivar until: the last microversion with the field in this form
    """

    name: str
    location: str
    type: str
    required: str
    since: Version
    until: Version
    description: str


@dataclass(frozen=True, slots=True)
class _Form:
    """What distinguishes the rows of a table."""

    name: str
    type: str
    description: str


@dataclass(slots=True)
class _Uses:
    """The microversions with a form of a field, those that require it, and those with a limit."""

    all: list[Version] = field(default_factory=list)
    required: list[Version] = field(default_factory=list)
    limits: dict[str, list[Version]] = field(default_factory=dict)
    values: dict[str, list[Version]] = field(default_factory=dict)


def rows(schemas: Mapping[Version, Schema], limited: bool = True) -> list[Row]:
    """Return one row for each form of each field.

    The rows are in the order of the latest schema. The forms that only earlier schemas have follow.

    :param schemas: the schema of the document in each microversion that has such a document
    :param limited: whether the descriptions contain the limits of the values
    """
    found: dict[_Form, _Uses] = {}
    for version in sorted(schemas, reverse=True):
        for form, required, schema in _fields('', schemas[version], True):
            uses = found.setdefault(form, _Uses())
            uses.all.append(version)
            if required:
                uses.required.append(version)
            for limit in limits(schema) if limited else ():
                uses.limits.setdefault(limit, []).append(version)
            for value in schema.get('enum', ()):
                uses.values.setdefault(value, []).append(version)
    return [_row(form, uses) for form, uses in found.items()]


def _row(form: _Form, uses: _Uses) -> Row:
    return Row(
        form.name,
        'body',
        form.type,
        requirement(uses.required, uses.all),
        *span(uses.all),
        ' '.join([form.description, *_notes(uses)]).strip(),
    )


def _notes(uses: _Uses) -> Iterator[str]:
    """Yield a sentence about each limit, with its microversions if it does not always apply."""
    if uses.values:
        earliest = sorted(uses.values, key=lambda value: min(uses.values[value]))
        values = [f'`{one}`{_where(uses.values[one], uses.all)}' for one in earliest]
        yield f'One of {", ".join(values)}.' if len(values) > 1 else f'Always {values[0]}.'
    for limit, versions in uses.limits.items():
        yield f'{limit}{_where(versions, uses.all)}.'


def _where(versions: list[Version], every: list[Version]) -> str:
    text = window(versions, every)
    return f' ({text})' if text else ''


def window(versions: list[Version], every: list[Version]) -> str:
    """Return the range of some microversions as text, or an empty text for all of them.

    :param every: the microversions among which the range is
    """
    first, last = span(versions)
    if len(versions) == len(every):
        return ''
    if last == max(every):
        return f'{first} and later'
    return f'{first} to {last}' if first != last else f'only {first}'


def period(since: Version, until: Version) -> str:
    """Return a range of microversions as text."""
    if since == until:
        return f'In microversion {since}'
    return f'In microversions {since} to {until}'


def note(since: Version, until: Version, first: Version) -> str:
    """Return a sentence about the range of a row; empty if it is that of the operation.

    :param first: the first microversion of the operation
    """
    if until < MAX_VERSION:
        return f'{period(since, until)} only.'
    return f'New in microversion {since}.' if since > first else ''


def span(versions: list[Version]) -> tuple[Version, Version]:
    """Return the first and the last of some microversions.

    :raises ValueError: a microversion between them is missing
    """
    first, last = min(versions), max(versions)
    if last.minor - first.minor + 1 != len(versions):
        raise ValueError(f'There is a gap in {sorted(versions)}')
    return first, last


def requirement(required: list[Version], every: list[Version]) -> str:
    """Return whether a field is required: `yes`, `no`, or a range of microversions."""
    if not required:
        return 'no'
    return window(required, every) or 'yes'


# One schema ---------------------------------------------------------------------


def _fields(name: str, schema: Schema, required: bool) -> Iterator[tuple[_Form, bool, Schema]]:
    """Yield the fields of a document: the form, whether it is required, and the schema."""
    if _has_row(name, schema):
        description = schema.get('description', '')
        yield _Form(name or BODY, type_of(schema), description), required, schema
    if schema.get('type') == 'array':
        if _is_nested(schema['items']):
            yield from _fields(f'{name}[]', schema['items'], True)
        return
    for key, one in schema.get('properties', {}).items():
        yield from _fields(_joined(name, key), one, key in schema.get('required', ()))
    values = values_of(schema)
    if values is not None:
        yield from _fields(_joined(name, f'{{{key_of(schema)}}}'), values, False)


def _has_row(name: str, schema: Schema) -> bool:
    """Return whether a document has a row of its own, apart from those of its members.

    The objects in an array, and the objects that are values of unnamed keys, have none.
    """
    if name.endswith(('[]', '}')) or not name:
        return not _is_nested(schema)
    return True


def _is_nested(schema: Schema) -> bool:
    return schema.get('type') == 'object'


def _joined(name: str, key: str) -> str:
    return f'{name}.{key}' if name else key


def values_of(schema: Schema) -> Schema | None:
    """Return the schema of the values whose keys have no fixed names, or None."""
    for values in schema.get('patternProperties', {}).values():
        return dict(values)
    values = schema.get('additionalProperties')
    return dict(values) if isinstance(values, Mapping) else None


def key_of(schema: Schema) -> str:
    """Return the name of the keys of an object, for example `provider_uuid`.

    :raises UndescribedKeysError: the description does not state what the keys are
    """
    description = schema.get('description', '')
    match = _KEYS.search(description)
    if match is None or match[1] not in KEYS:
        raise UndescribedKeysError(f'No phrase of KEYS follows "keys are" in: {description!r}')
    return KEYS[match[1]]


def type_of(schema: Schema) -> str:
    """Return the type of a field as text, for example `array of UUIDs` or `integer or null`."""
    types = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
    first, *others = types
    if first == 'array':
        item = type_of(schema['items'])
        first = f'array of {item}s'
    elif schema.get('format') == 'uuid' or schema.get('pattern') in UUID_PATTERNS:
        first = 'UUID'
    return ' or '.join([first, *others])


def limits(schema: Schema) -> Iterator[str]:
    """Yield the limits of a value. Each is the beginning of a sentence without its end."""
    if 'minimum' in schema or 'maximum' in schema:
        yield _range(schema.get('minimum'), schema.get('maximum'))
    if 'minLength' in schema or 'maxLength' in schema:
        yield _length(schema.get('minLength', 0), schema.get('maxLength'))
    pattern = schema.get('pattern')
    if pattern is not None and pattern not in UUID_PATTERNS:
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
