"""The operations of the API: what the service declares, with the texts that document it."""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from api_reference import bodies, parameters
from api_reference.terms import Change, Failure, Operation, Parameter, Success
from api_reference.texts import TEXTS
from placement import errors, handlers, microversion
from placement.handlers.operation import Operation as Declared
from placement.microversion import MAX_VERSION, Variants, Version
from placement.schemas import TEXT, Schema

Texts = Mapping[str, Any]


def _version(name: str) -> Version:
    """Return the microversion that a constant names."""
    version: Version = getattr(microversion, name)
    return version


def _by_version(texts: Texts | str) -> Variants[str]:
    """Return a text that can differ by microversion."""
    if isinstance(texts, str):
        texts = {'MIN_VERSION': texts}
    return Variants({_version(since): text for since, text in texts.items()})


def _ranged(entry: Texts) -> dict[str, Any]:
    """Return an entry with its range of microversions, as the arguments of `Ranged`."""
    result = dict(entry)
    if 'since' in entry:
        result['since'] = _version(entry['since'])
    if 'before' in entry:
        result['until'] = _version(result.pop('before')).before()
    return result


def _changes(texts: Texts) -> tuple[Change, ...]:
    return tuple(Change(**_ranged(entry)) for entry in texts.get('changes', ()))


def _successes(texts: Texts) -> Iterator[Success]:
    for entry in texts['successes']:
        values = _ranged(entry)
        if 'body' in entry:
            values['body'] = getattr(bodies, entry['body'])
        yield Success(**values | {'status': HTTPStatus(entry['status'])})


def _failures(entries: Iterable[Texts | list[Texts]]) -> Iterator[Failure]:
    for entry in entries:
        if isinstance(entry, list):
            yield from _failures(entry)
            continue
        values = _ranged(entry)
        if 'code' in entry:
            values['code'] = getattr(errors, entry['code'])
        yield Failure(**values | {'status': HTTPStatus(entry['status'])})


def _query(declared: Declared, texts: Texts) -> tuple[Parameter, ...] | None:
    """Return the parameters of a query string.

    If the handler of an operation validates the query string, only the texts contain the names.
    """
    if declared.query is None:
        return None
    names = declared.query or texts['query']
    return tuple(_parameter(name, declared, texts['query'][name]) for name in names)


def _parameter(key: str, operation: Declared, texts: Texts) -> Parameter:
    """Return a parameter. Its key ends in `{suffix}` if its name has a suffix."""
    name, mark, _ = key.partition('{')
    declared = (operation.query or {}).get(name)
    required_until = None
    if declared is None:
        since = _version(texts['since']) if 'since' in texts else operation.since
        if 'required_before' in texts:
            required_until = _version(texts['required_before']).before()
    else:
        since = max(declared.since, operation.since)
        if declared.required:
            required_until = MAX_VERSION
    if declared is None or (declared.schema == TEXT and name in parameters.FORMS):
        value = parameters.forms(name, since)
    else:
        value = Variants({since: declared.schema})
    return Parameter(
        name=name,
        text=texts['text'],
        changes=_changes(texts),
        value=value,
        repeatable=parameters.REPEATABLE.get(name),
        suffix=parameters.SUFFIX if mark else None,
        required_until=required_until,
    )


def described(schema: Schema, texts: Texts | str, version: Version) -> dict[str, Any]:
    """Return a schema of a request body with descriptions.

    :param texts: the descriptions, in the form that `operations.yaml` explains
    :raises KeyError: a part of the schema has no description
    """
    if isinstance(texts, str):
        texts = {'.': texts}
    own = texts.get('.')
    if own:
        own = _by_version(own).pick(version)
    result: dict[str, Any] = {}
    for keyword, value in schema.items():
        result[keyword] = value
        if keyword == 'properties':
            result[keyword] = {
                name: described(one, texts[name], version) for name, one in value.items()
            }
        elif keyword == 'patternProperties':
            result[keyword] = {
                key: described(one, texts['*'], version) for key, one in value.items()
            }
        elif isinstance(value, Mapping):
            result[keyword] = described(value, texts['*'], version)
        if own and keyword == 'additionalProperties':
            result['description'] = own
    return {**result, 'description': own} if own else result


def _body(declared: Declared, texts: Texts) -> Variants[Schema | None] | None:
    if declared.body is None:
        return None
    return Variants(
        {
            window.since: window.variant and described(window.variant, texts['body'], window.since)
            for window in declared.body.windows()
        }
    )


def _documented(declared: Declared, texts: Texts) -> Operation:
    return Operation(
        declared=declared,
        title=texts['title'],
        summary=_by_version(texts['summary']),
        text=texts.get('text', ''),
        changes=_changes(texts),
        query=_query(declared, texts),
        body=_body(declared, texts),
        checked_path=texts.get('checked_path', ''),
        successes=tuple(_successes(texts)),
        failures=tuple(_failures(texts.get('failures', ()))),
    )


# Path -> HTTP method -> operation, in the order of the service.
OPERATIONS = {
    path: {
        method: _documented(declared, TEXTS[f'{method} {path or "/"}'])
        for method, declared in methods.items()
    }
    for path, methods in handlers.OPERATIONS.items()
}
