"""The parts that the document of one microversion and the combined document have in common."""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from api_reference import error_bodies, parameters, responses
from api_reference.openapi import names
from api_reference.openapi.schemas import Schema, converted, range_of
from api_reference.operations import OPERATIONS
from api_reference.terms import Failure, Operation, Parameter, Success
from placement import errors, microversion
from placement.microversion import MAX_VERSION, MIN_VERSION, VERSIONS, Variants, Version

JSON = 'application/json'
ERROR = 'Error'
BAD_REQUEST = 'BadRequest'
EARLY_ERROR = 'EarlyError'
UNAUTHORIZED = 'Unauthorized'
MICROVERSION = 'Microversion'
OPTIONAL_MICROVERSION = 'OptionalMicroversion'
# The beginning of the names of the components of headers that a response can omit.
_OPTIONAL = 'Optional-'
# OpenAPI has no empty path: the path of the version document is `/`.
PATHS = {path: methods for path, methods in OPERATIONS.items() if path}

SECURITY_SCHEMES = {
    'ApiKeyAuth': {
        'type': 'apiKey',
        'in': 'header',
        'name': 'X-Auth-Token',
        'description': 'A token of the identity service. Its scope must be a project.',
    }
}

# The statuses whose responses are the same for all operations.
SHARED = {
    HTTPStatus.UNAUTHORIZED: 'Unauthorized',
    HTTPStatus.FORBIDDEN: 'Forbidden',
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 'RequestEntityTooLarge',
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 'UnsupportedMediaType',
    HTTPStatus.INTERNAL_SERVER_ERROR: 'InternalServerError',
    HTTPStatus.SERVICE_UNAVAILABLE: 'ServiceUnavailable',
}


def head(version: str, description: str) -> Schema:
    """Return the first members of a document.

    :param version: the value of `info.version`
    """
    return {
        'openapi': '3.1.0',
        'info': {
            'title': names.TITLE,
            'version': version,
            'description': description,
            'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
        },
        'servers': [{'url': '/', 'description': 'The path at which the API is mounted.'}],
        'security': [{'ApiKeyAuth': []}],
    }


def assembled(first: Schema, paths: Schema, schemas: Schema, version: Version | None) -> Schema:
    """Return a document.

    :param first: the first members of the document
    :param schemas: the components of the schemas of bodies and of errors
    :param version: the microversion of the document; None for the combined document
    """
    shared = shared_responses(version)
    required = version is not None and version > MIN_VERSION
    versions = {MICROVERSION: version_schema()} if version is None else {}
    return {
        **first,
        'tags': tags(paths),
        'paths': paths,
        'components': {
            'securitySchemes': SECURITY_SCHEMES,
            'parameters': {
                OPTIONAL_MICROVERSION: version_parameter(version, required=False),
                MICROVERSION: version_parameter(version, required),
            },
            'headers': header_components(
                *(
                    operation['responses']
                    for operations in paths.values()
                    for operation in operations.values()
                ),
                shared,
            ),
            'responses': shared,
            'schemas': {**schemas, **versions},
        },
    }


def tags(paths: Iterable[str]) -> list[Schema]:
    """Return the tags of the operations of some paths, without duplicates."""
    return [
        {'name': name, 'description': names.TAGS[name]}
        for name in dict.fromkeys(map(names.tag, paths))
    ]


def reference(kind: str, name: str) -> Schema:
    """Return a reference to a component."""
    return {'$ref': f'#/components/{kind}/{name}'}


def description(described: Operation | Parameter, version: Version | None) -> str:
    """Return the description of an operation or a parameter for a document.

    :param version: the microversion of the document; None for the combined document
    """
    return described.description if version is None else described.description_at(version)


def summary(operation: Operation, version: Version | None) -> Schema:
    """Return the first members of an operation.

    :param version: the microversion of the document; None for the combined document
    """
    rule = f'\n\nPolicy rule: `{operation.declared.rule.name}`' if operation.declared.rule else ''
    function = None if version is None else names.function_name(operation.title)
    result: Schema = {
        'operationId': function or names.operation_id(operation.declared),
        'tags': [names.tag(operation.declared.path)],
        'summary': operation.summary.pick(version or MAX_VERSION),
        'description': f'{description(operation, version)}{rule}',
    }
    if operation.declared.rule is None:
        result['security'] = []
    return result


# Parameters ---------------------------------------------------------------------


def version_parameter(version: Version | None, required: bool) -> Schema:
    """Return the parameter for the microversion.

    :param version: the microversion of the document; None for the combined document
    """
    if version is None:
        schema = reference('schemas', MICROVERSION)
    else:
        # Generated functions have no parameter that a caller must pass: an `enum` would need one.
        default = f'placement {version}'
        pattern = default.replace('.', r'\.')
        schema = {'type': 'string', 'pattern': f'^{pattern}$', 'default': default}
    return {
        'name': 'OpenStack-API-Version',
        'in': 'header',
        'required': required,
        'description': 'The microversion of the request.'
        + ('' if required else f' Without it, {MIN_VERSION} applies.'),
        'schema': schema,
    }


def version_schema() -> Schema:
    """Return the schema of the header that selects any microversion."""
    return {'type': 'string', 'enum': [f'placement {one}' for one in (*VERSIONS, 'latest')]}


def version_reference(operation: Operation) -> Schema:
    """Return a reference to the parameter for the microversion.

    The version document depends on no microversion: a client reads it to select one.
    """
    name = OPTIONAL_MICROVERSION if operation.declared.rule is None else MICROVERSION
    return reference('parameters', name)


def path_parameters(operation: Operation, version: Version) -> list[Schema]:
    """Return the parameters in the path of an operation."""
    return [
        {
            'name': name,
            'in': 'path',
            'required': True,
            'description': schema['description'],
            'schema': {
                key: value
                for key, value in converted(schema, of_request=True).items()
                if key != 'description'
            },
        }
        for name, schema in parameters.path_items(operation, version).items()
    ]


def query_parameter(parameter: Parameter, version: Version | None) -> Schema:
    """Return a query parameter without a suffix.

    :param version: the microversion of the document; None for the combined document
    """
    form = version or MAX_VERSION
    value = converted(parameter.value.pick(form))
    result: Schema = {
        'name': parameter.name,
        'in': 'query',
        'required': parameter.is_required(form),
        'description': description(parameter, version),
        'schema': value,
    }
    if parameter.is_repeatable(form):
        result |= {'style': 'form', 'explode': True, 'schema': {'type': 'array', 'items': value}}
    return result


def group_parameter(suffixed: Iterable[Parameter], version: Version | None) -> Schema:
    """Return one parameter for all query parameters with suffixes.

    In OpenAPI, a parameter has one name. The members of an object with `explode` become parameters
    of the query string, so the object can have patterns for the names.

    :param version: the microversion of the document; None for the combined document
    """
    form = version or MAX_VERSION
    members = {}
    lines = []
    for parameter in suffixed:
        assert parameter.suffix is not None
        pattern = f'^{parameter.name}{parameter.suffix.pick(form)}$'
        members[pattern] = converted(parameter.value.pick(form))
        lines.append(f'`{parameter.name}` with a suffix: {description(parameter, version)}')
    return {
        'name': 'request_groups',
        'in': 'query',
        'required': False,
        'description': '\n\n'.join(
            ['The parameters of request groups. The name of each ends in the suffix.', *lines]
        ),
        'style': 'form',
        'explode': True,
        # Code generators do not support `patternProperties`. No name is in `additionalProperties`
        # only, so this keyword does not change which objects are valid.
        'schema': {
            'type': 'object',
            'propertyNames': {'pattern': '|'.join(members)},
            'patternProperties': members,
            'additionalProperties': {'type': 'string'},
        },
    }


# Responses ----------------------------------------------------------------------


def reasons(response: responses.Response, version: Version | None) -> str:
    """Return the description of a response: what the service did, or why the request failed.

    :param version: the microversion of the document; None for the combined document, which states
        the microversions of each reason
    """
    lines = [_reason(reason, version) for reason in response.reasons]
    return lines[0] if len(lines) == 1 else '\n'.join(f'* {line}' for line in lines)


def _reason(reason: Success | Failure, version: Version | None) -> str:
    text = reason.when
    with_codes = (version or MAX_VERSION) >= microversion.ERROR_CODES
    if isinstance(reason, Failure) and with_codes and reason.code != errors.UNDEFINED_CODE:
        text = f'`{reason.code}`: {text}'
    limits = range_of(reason.since, reason.until).get('x-openstack', {})
    if version is not None or not limits:
        return text
    since, until = limits.get('min-ver'), limits.get('max-ver')
    if until is None:
        return f'{text} New in {since}.'
    return f'{text} {since or MIN_VERSION} to {until}.'


def headers(response: responses.Response) -> Schema:
    """Return references to the components of the headers of a response."""
    return {
        name: reference('headers', name if name in response.headers else f'{_OPTIONAL}{name}')
        for name in sorted(response.headers | response.optional_headers)
    }


def header_components(*responding: Mapping[str, Schema]) -> Schema:
    """Return the components of the headers to which responses refer."""
    components = {
        f'{prefix}{name}': {
            'description': header.description,
            'required': not prefix,
            'schema': converted(header.schema),
        }
        for name, header in responses.HEADERS.items()
        for prefix in ('', _OPTIONAL)
    }
    used = {
        header['$ref'].rpartition('/')[2]
        for described in responding
        for response in described.values()
        for header in response.get('headers', {}).values()
    }
    return {name: header for name, header in components.items() if name in used}


# Clients send an empty JSON object to operations that need no body. Code generators do not support
# other media types without a schema.
IGNORED_BODY: Schema = {
    'description': 'Placement ignores the body.',
    'required': False,
    'content': {JSON: {'schema': {}}},
}


def content(schema: str, examples: Schema | None = None) -> Schema:
    """Return the content of a request or a response.

    :param schema: the name of the component schema
    :param examples: the member `examples`, if the content has one
    """
    return {JSON: {'schema': reference('schemas', schema), **(examples or {})}}


def error_content(schema: str) -> Schema:
    """Return the content of an error response. The Accept header selects the media type."""
    text = {'schema': {'type': 'string'}}
    return {JSON: {'schema': reference('schemas', schema)}, 'text/html': text, 'text/plain': text}


def error_schema_name(status: HTTPStatus) -> str:
    """Return the name of the component schema of the error documents with a status."""
    if status == HTTPStatus.UNAUTHORIZED:
        return UNAUTHORIZED
    if status == HTTPStatus.BAD_REQUEST:
        return BAD_REQUEST
    return EARLY_ERROR if status in responses.EARLY_STATUSES else ERROR


def error_schemas(convert: Callable[[Variants[Any]], Schema]) -> Schema:
    """Return the components of the schemas of errors.

    :param convert: returns the schema of a document for the variants of a schema
    """
    unauthorized = {
        'UnauthorizedByPlacement': error_bodies.UNAUTHORIZED_BY_PLACEMENT,
        'UnauthorizedByKeystonemiddleware': error_bodies.UNAUTHORIZED_BY_KEYSTONEMIDDLEWARE,
    }
    return {
        ERROR: convert(error_bodies.ERROR),
        BAD_REQUEST: convert(error_bodies.BAD_REQUEST),
        EARLY_ERROR: converted(error_bodies.EARLY_ERROR),
        UNAUTHORIZED: {'oneOf': [reference('schemas', name) for name in unauthorized]},
        **{name: converted(schema) for name, schema in unauthorized.items()},
    }


def error_response(response: responses.Response, version: Version | None) -> Schema:
    """Return an error response.

    :param version: the microversion of the document; None for the combined document
    """
    return {
        'description': reasons(response, version),
        'headers': headers(response),
        'content': error_content(error_schema_name(response.status)),
    }


def shared_responses(version: Version | None) -> Mapping[str, Schema]:
    """Return the components of the responses that are the same for all operations.

    :param version: the microversion of the document; None for the combined document
    """
    path = '/resource_providers'
    declared = responses.responses(PATHS[path]['POST'], version or MAX_VERSION)
    return {
        SHARED[response.status]: error_response(response, version)
        for response in declared
        if response.status in SHARED
    }
