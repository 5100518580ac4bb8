"""The combined OpenAPI document of all microversions, for the code generators of OpenStack.

A body that differs by microversion is a component schema with `oneOf`. The microversion, not the
content, selects the variant, so documents of the API cannot be validated against it.
"""

from http import HTTPStatus

from placement.microversion import MAX_VERSION, VERSIONS, Version, of_text
from placement.openapi import names, parts
from placement.openapi.schemas import Schema, range_of, variants
from placement.operations import responses
from placement.operations.operation import Operation, Success
from placement.schemas import error as error_schemas

_DESCRIPTION = (
    'The API of the placement service in all microversions. Placement tracks which resources a '
    'cloud has and which consumers use them.\n\n'
    'The member `x-openstack` contains the first and the last microversion (`min-ver` and '
    '`max-ver`) of an operation, a parameter, a response, a property, or a variant of a schema.'
)


def document() -> Schema:
    """Return the combined document."""
    schemas: Schema = {}
    paths = {
        path: {
            method.lower(): _operation(path, method, operation, schemas)
            for method, operation in methods.items()
        }
        for path, methods in parts.PATHS.items()
    }
    head = parts.head(str(MAX_VERSION), _DESCRIPTION)
    return parts.assembled(head, paths, schemas, variants(error_schemas.ERROR), None)


def _operation(path: str, method: str, operation: Operation, schemas: Schema) -> Schema:
    """Return an operation, and add the schemas of its bodies to `schemas`."""
    component = names.component(path, method)
    result = {
        **parts.summary(path, method, operation, None),
        **range_of(operation.since),
        'parameters': [
            parts.reference('parameters', parts.MICROVERSION),
            *parts.path_parameters(path),
            *_query(operation),
        ],
    }
    if operation.body is not None:
        schemas[f'{component}Request'] = variants(operation.body)
        result['requestBody'] = {
            'required': operation.body_at(MAX_VERSION) is not None,
            'content': parts.content(f'{component}Request'),
        }
    for success in operation.successes:
        if success.body is not None:
            schemas[f'{component}Response'] = variants(success.body)
    result['responses'] = {
        str(response.status.value): _response(response, f'{component}Response', operation)
        for response in _responses(path, operation)
    }
    return result


def _query(operation: Operation) -> list[Schema]:
    declared = operation.query or ()
    suffixed = [one for one in declared if one.suffix is not None]
    result = [
        {
            **parts.query_parameter(one, None),
            **range_of(one.since, earliest=operation.since),
        }
        for one in declared
        if one.suffix is None
    ]
    if suffixed:
        first = min(one.since for one in suffixed)
        group = parts.group_parameter(suffixed, None)
        result.append({**group, **range_of(first, earliest=operation.since)})
    return result


def _responses(path: str, operation: Operation) -> list[responses.Response]:
    """Return one response for each status, with the reasons of all microversions."""
    found: dict[HTTPStatus, responses.Response] = {}
    for version in reversed(list(map(of_text, VERSIONS))):
        if version < operation.since:
            break
        for response in responses.responses(path, operation, version):
            later = found.get(response.status)
            found[response.status] = response if later is None else _merged(later, response)
    return [found[status] for status in sorted(found)]


def _merged(later: responses.Response, earlier: responses.Response) -> responses.Response:
    """Return the response of a later microversion, with the reasons of an earlier one, too."""
    return responses.Response(
        later.status,
        tuple(dict.fromkeys((*later.reasons, *earlier.reasons))),
        later.body,
        later.headers,
        later.optional_headers | (earlier.headers - later.headers),
    )


def _response(response: responses.Response, name: str, operation: Operation) -> Schema:
    if response.status in parts.SHARED:
        return parts.reference('responses', parts.SHARED[response.status])
    if response.status >= HTTPStatus.BAD_REQUEST:
        return parts.error_response(response, None)
    since, until = _range(response, operation)
    result: Schema = {
        'description': parts.reasons(response, MAX_VERSION),
        **range_of(since, until, operation.since),
        'headers': parts.headers(response.headers),
    }
    if response.body is not None:
        result['content'] = parts.content(name)
    return result


def _range(response: responses.Response, operation: Operation) -> tuple[Version, Version]:
    """Return the first and the last microversion with a successful response."""
    (success,) = response.reasons
    assert isinstance(success, Success)
    return max(success.since, operation.since), success.until
