"""Validation of documents and query strings against JSON schemas.

A schema is plain data (`placement.schemas`). The first validation against a schema compiles a
validator, which is cached: schemas are constants, and there are a few dozen of them.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema
from oslo_utils import uuidutils

Schema = Mapping[str, Any]

_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks('uuid')
def _is_uuid(value: Any) -> bool:
    """Return whether a text is a uuid in any form; `type` rejects values that are not texts."""
    return not isinstance(value, str) or uuidutils.is_uuid_like(value)


# id() of a schema -> the schema and its validator. The reference to the schema prevents Python from
# reusing the id for another object.
_validators: dict[int, tuple[Schema, jsonschema.protocols.Validator]] = {}

# In characters. The error does not repeat a large document.
_LONGEST_PROBLEM = 1000


def problem(schema: Schema, document: Any) -> str | None:
    """Return the first violation in a document, in one line: the value and the violated rule.

    :returns: None if the document is valid
    """
    validator = _validator(schema)
    try:
        error = next(validator.iter_errors(document), None)
        return None if error is None else _one_line(error.message, error.json_path)
    except RecursionError:
        return 'the document is nested too deeply'


def has_nul(document: Any) -> bool:
    """Return whether any text of a document, keys included, contains a NUL character."""
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


def _validator(schema: Schema) -> jsonschema.protocols.Validator:
    try:
        return _validators[id(schema)][1]
    except KeyError:
        validator = jsonschema.Draft202012Validator(schema, format_checker=_FORMATS)
        _validators[id(schema)] = (schema, validator)
        return validator


def _one_line(message: str, path: str) -> str:
    if len(message) > _LONGEST_PROBLEM:
        half = _LONGEST_PROBLEM // 2
        message = f'{message[:half]} ... {message[-half:]}'
    if len(path) > _LONGEST_PROBLEM:
        path = f'{path[:_LONGEST_PROBLEM]} ...'
    return ' '.join(message.splitlines()) + (f' (at {path})' if path != '$' else '')
