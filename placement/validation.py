"""Validation of documents and query strings against JSON schemas.

A schema is plain data. The first validation against a schema creates a
validator and caches it. The cache has no limit, because the number of schemas is limited: all of
them are constants, or derived from constants when the service starts.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema
from oslo_utils import uuidutils

Schema = Mapping[str, Any]

_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks('uuid')
def _is_uuid(value: Any) -> bool:
    """Return whether a string is a UUID in any form. The keyword `type` rejects other values."""
    return not isinstance(value, str) or uuidutils.is_uuid_like(value)


# id() of a schema -> the schema and its validator. The reference to the schema prevents Python from
# reusing the id for another object.
_validators: dict[int, tuple[Schema, jsonschema.protocols.Validator]] = {}

# The maximum length, in characters, of a violation and of its path in an error message.
_LONGEST_PROBLEM = 1000


def problem(schema: Schema, document: Any) -> str | None:
    """Return a one-line description of the first violation of the schema in a document.

    :returns: the invalid value and the violated rule; None if the document is valid
    """
    cached = _validators.get(id(schema))
    validator = _add_validator(schema) if cached is None else cached[1]
    try:
        error = next(validator.iter_errors(document), None)
        return None if error is None else _one_line(_message(error), error.json_path)
    except RecursionError:
        return 'the document is nested too deeply'


def has_nul(document: Any) -> bool:
    """Return whether any string in a document, including keys, contains a NUL character."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            if '\0' in value:
                return True
        elif isinstance(value, dict):
            pending.extend(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return False


def _add_validator(schema: Schema) -> jsonschema.protocols.Validator:
    validator = jsonschema.Draft202012Validator(schema, format_checker=_FORMATS)
    _validators[id(schema)] = (schema, validator)
    return validator


def _message(error: jsonschema.ValidationError) -> str:
    r"""Return the message of a violation, with patterns as in the OpenAPI documents.

    The documents contain ``$`` in place of ``\Z``, which other languages than Python do not have.
    If a schema has a description of its pattern or type, that is in the message instead.
    """
    if error.validator in ('pattern', 'type') and 'description' in error.schema:
        return f'{error.instance!r} is not {error.schema["description"]}'
    message: str = error.message
    keys = error.validator == 'additionalProperties' and 'patternProperties' in error.schema
    if not keys and error.validator != 'pattern':
        return message
    # The message is similar to "'a' does not match '^A\\Z'".
    beginning, verb, patterns = message.rpartition(' match ')
    return beginning + verb + patterns.replace(r'\\Z', '$')


def _one_line(message: str, path: str) -> str:
    if len(message) > _LONGEST_PROBLEM:
        half = _LONGEST_PROBLEM // 2
        message = f'{message[:half]} ... {message[-half:]}'
    if len(path) > _LONGEST_PROBLEM:
        path = f'{path[:_LONGEST_PROBLEM]} ...'
    return ' '.join(message.splitlines()) + (f' (at {path})' if path != '$' else '')
