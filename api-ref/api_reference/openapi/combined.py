"""The combined OpenAPI document of all microversions, for the code generators of OpenStack.

A body that differs by microversion is a component schema with `oneOf`. The microversion, not the
content, selects the variant, so documents of the API cannot be validated against it.
"""

from http import HTTPStatus

from api_reference import responses
from api_reference.openapi import names, parts
from api_reference.openapi.schemas import Schema, range_of, variants
from api_reference.terms import Operation, Success
from placement.microversion import MAX_VERSION, VERSIONS, Version, of_text

_DESCRIPTION = (
    'The API of the placement service in all microversions. Placement tracks which resources a '
    'cloud has and which consumers use them.\n\n'
    'The member `x-openstack` contains the first and the last microversion (`min-ver` and '
    '`max-ver`) of an operation, a parameter, a response, a property, or a variant of a schema.\n\n'
    'If a query parameter is repeated, its last value applies, unless the description of the '
    'parameter states another rule.'
)


def document() -> Schema:
    """Return the combined document."""
    schemas: Schema = {}
    paths = {
        path: {
            method.lower(): _operation(operation, schemas) for method, operation in methods.items()
        }
        for path, methods in parts.PATHS.items()
    }
    head = parts.head(str(MAX_VERSION), _DESCRIPTION)
    schemas |= parts.error_schemas(variants)
    return parts.assembled(head, paths, schemas, None)


def _operation(operation: Operation, schemas: Schema) -> Schema:
    """Return an operation, and add the schemas of its bodies to `schemas`."""
    component = names.component(operation.declared)
    result = {
        **parts.summary(operation, None),
        **range_of(operation.since),
        'parameters': [
            parts.version_reference(operation),
            *parts.path_parameters(operation, MAX_VERSION),
            *_query(operation),
        ],
    }
    if operation.body is not None:
        schemas[f'{component}Request'] = variants(operation.body, of_request=True)
        result['requestBody'] = {
            'required': operation.body_at(MAX_VERSION) is not None,
            'content': parts.content(f'{component}Request'),
        }
    elif operation.declared.method == 'PUT':
        result['requestBody'] = parts.IGNORED_BODY
    for success in operation.successes:
        if success.body is not None:
            schemas[f'{component}Response'] = variants(success.body)
    result['responses'] = {
        str(response.status.value): _response(response, f'{component}Response', operation)
        for response in _responses(operation)
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


def _responses(operation: Operation) -> list[responses.Response]:
    """Return one response for each status, with the reasons of all microversions."""
    found: dict[HTTPStatus, responses.Response] = {}
    for version in reversed(list(map(of_text, VERSIONS))):
        if version < operation.since:
            break
        for response in responses.responses(operation, version):
            later = found.get(response.status)
            found[response.status] = response if later is None else later.merged(response)
    return [found[status] for status in sorted(found)]


def _response(response: responses.Response, name: str, operation: Operation) -> Schema:
    if response.status in parts.SHARED:
        return parts.reference('responses', parts.SHARED[response.status])
    if response.status >= HTTPStatus.BAD_REQUEST:
        return parts.error_response(response, None)
    since, until = _range(response, operation)
    result: Schema = {
        'description': parts.reasons(response, MAX_VERSION),
        **range_of(since, until, operation.since),
        'headers': parts.headers(response),
    }
    if response.body is not None:
        result['content'] = parts.content(name)
    return result


def _range(response: responses.Response, operation: Operation) -> tuple[Version, Version]:
    """Return the first and the last microversion with a successful response."""
    (success,) = response.reasons
    assert isinstance(success, Success)
    return max(success.since, operation.since), success.until
