"""The OpenAPI document of one microversion. Any tool that reads OpenAPI 3.1 can use it."""

from http import HTTPStatus

from api_reference import examples, responses
from api_reference.openapi import names, parts
from api_reference.openapi.schemas import Schema, converted
from api_reference.terms import Operation
from placement.microversion import MIN_VERSION, Version

_DESCRIPTION = (
    'The API of the placement service in microversion {version}. Placement tracks which resources '
    'a cloud has and which consumers use them.\n\n'
    '{selection} If a query parameter is repeated, its last value applies, unless the description '
    'of the parameter states another rule. Every response contains the header '
    '`X-Openstack-Request-Id`. If the service allows requests of other origins (CORS), responses '
    'also contain the headers `Access-Control-*`.'
)
_SELECTION = (
    'Every request except `GET /` must contain the header `OpenStack-API-Version: placement '
    '{version}`.'
)
_DEFAULT = (
    'Requests can contain the header `OpenStack-API-Version: placement {version}`. Without the '
    'header, this microversion applies.'
)


def document(version: Version) -> Schema:
    """Return the document of a microversion."""
    paths: Schema = {}
    schemas: Schema = {}
    for path, methods in parts.PATHS.items():
        operations = {
            method.lower(): _operation(operation, version, schemas)
            for method, operation in methods.items()
            if version >= operation.since
        }
        if operations:
            paths[path] = operations
    selection = (_SELECTION if version > MIN_VERSION else _DEFAULT).format(version=version)
    head = parts.head(str(version), _DESCRIPTION.format(version=version, selection=selection))
    schemas |= parts.error_schemas(lambda declared: converted(declared.pick(version)))
    return parts.assembled(head, paths, schemas, version)


def _operation(operation: Operation, version: Version, schemas: Schema) -> Schema:
    """Return an operation, and add the schemas of its bodies to `schemas`."""
    component = names.component(operation.declared)
    result = parts.summary(operation, version)
    result['parameters'] = [
        parts.version_reference(operation),
        *parts.path_parameters(operation, version),
        *_query(operation, version),
    ]
    body = operation.body_at(version)
    if body is not None:
        name = f'{component}Request'
        schemas[name] = converted(body, of_request=True)
        result['requestBody'] = {
            'required': True,
            'content': parts.content(name, examples.of_request(operation, version)),
        }
    elif operation.declared.method == 'PUT':
        result['requestBody'] = parts.IGNORED_BODY
    name = f'{component}Response'
    result['responses'] = {}
    for response in _responses(operation, version):
        status = response.status
        result['responses'][str(status.value)] = _response(response, version)
        if response.body is not None and status < HTTPStatus.BAD_REQUEST:
            schemas[name] = converted(response.body)
            result['responses'][str(status.value)]['content'] = parts.content(
                name, examples.of_response(operation, version, status)
            )
    return result


def _query(operation: Operation, version: Version) -> list[Schema]:
    present = [one for one in operation.query or () if version >= one.since]
    suffixed = [one for one in present if one.suffix is not None]
    single = [parts.query_parameter(one, version) for one in present if one.suffix is None]
    return [*single, parts.group_parameter(suffixed, version)] if suffixed else single


def _responses(operation: Operation, version: Version) -> list[responses.Response]:
    found = responses.responses(operation, version)
    if operation.declared.rule is not None:
        return found
    # Without the header that selects the microversion, the response is that of the earliest one.
    earliest = responses.responses(operation, MIN_VERSION)
    return [later.merged(one) for later, one in zip(found, earliest, strict=True)]


def _response(response: responses.Response, version: Version) -> Schema:
    if response.status in parts.SHARED:
        return parts.reference('responses', parts.SHARED[response.status])
    if response.status >= HTTPStatus.BAD_REQUEST:
        return parts.error_response(response, version)
    return {
        'description': parts.reasons(response, version),
        'headers': parts.headers(response),
    }
