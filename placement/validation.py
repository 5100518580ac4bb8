"""Checking documents and query strings against JSON schemas.

A schema is plain data (`placement.schemas`). The first document checked against it compiles
a validator, which is kept: schemas are constants, there are a few dozen of them.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema
from oslo_utils import uuidutils

Schema = Mapping[str, Any]

_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks('uuid')
def _is_uuid(value: Any) -> bool:
    """Whether a text is a uuid in any form; what is no text is the business of `type`."""
    return not isinstance(value, str) or uuidutils.is_uuid_like(value)


# Schema by identity -> the schema itself, so that its identity is not given away, and its
# validator.
_validators: dict[int, tuple[Schema, jsonschema.protocols.Validator]] = {}

# A client is shown what is wrong, not the megabyte that it sent.
_LONGEST_PROBLEM = 1000


def problem(schema: Schema, document: Any) -> str | None:
    """What is wrong with a document, in one line: the value and the rule it breaks.

    None when the document is valid.
    """
    validator = _validator(schema)
    try:
        error = next(validator.iter_errors(document), None)
        return None if error is None else _one_line(error.message, error.json_path)
    except RecursionError:
        return 'the document is nested too deeply'


def has_nul(document: Any) -> bool:
    """Whether any text of a document, keys included, contains a NUL character."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if '\0' in value:
                return True
        elif isinstance(value, dict):
            waiting.extend(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
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
