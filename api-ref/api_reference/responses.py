"""All responses of an operation in a microversion, with those that all operations have in common.

A microversion decides which successes and failures of an operation apply, and which schemas their
bodies have.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from api_reference import error_bodies
from api_reference.terms import Failure, Operation, Success, bad, conflict
from placement import errors, microversion
from placement.microversion import Version
from placement.schemas import TEXT, Schema

# The statuses of errors that can occur before Placement determines the microversion.
EARLY_STATUSES = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.SERVICE_UNAVAILABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Header:
    """A header of responses."""

    description: str
    schema: Schema


# Name -> header. Content-Type and Content-Length are not listed: HTTP defines them.
HEADERS: dict[str, Header] = {
    'X-Openstack-Request-Id': Header(
        'The ID that Placement assigned to the request.',
        {'type': 'string', 'pattern': r'^req-[0-9a-f-]{36}\Z'},
    ),
    'OpenStack-API-Version': Header(
        'The microversion that Placement used, in the form `placement X.Y`.',
        {'type': 'string', 'pattern': r'^placement [0-9]+\.[0-9]+\Z'},
    ),
    'Vary': Header('The headers on which the response depends.', TEXT),
    'Last-Modified': Header(
        'The time of the latest change to the objects in the response, or the current time.', TEXT
    ),
    'Cache-Control': Header('Always `no-cache`.', {'type': 'string', 'enum': ['no-cache']}),
    'Location': Header('The absolute URL of the object.', {'type': 'string', 'format': 'uri'}),
    'Retry-After': Header(
        'The number of seconds after which the client can send the request again.',
        {'type': 'string', 'pattern': r'^[0-9]+\Z'},
    ),
    'OpenStack-Placement-Search': Header(
        'Candidates may be missing because the search reached a limit of the service.',
        {'type': 'string', 'enum': ['incomplete']},
    ),
    'WWW-Authenticate': Header('The URL of the identity service, if Keystone is used.', TEXT),
    'Allow': Header('The methods of the path, separated by commas.', TEXT),
}

# Responses have these headers if `[cors] allowed_origin` contains the origin of the request.
CORS_HEADERS = frozenset(
    {
        'Access-Control-Allow-Origin',
        'Access-Control-Allow-Credentials',
        'Access-Control-Expose-Headers',
    }
)

# Failures that many operations have in common.
_REFUSALS = (
    Failure(
        HTTPStatus.UNAUTHORIZED,
        'The token in the header `X-Auth-Token` is missing or invalid.',
    ),
    Failure(HTTPStatus.FORBIDDEN, 'The policy does not allow the request.'),
)
_UNSUPPORTED_VERSION = Failure(
    HTTPStatus.NOT_ACCEPTABLE, 'The service does not support the microversion.'
)
_NOT_ACCEPTABLE = Failure(
    HTTPStatus.NOT_ACCEPTABLE,
    'The header `Accept` does not allow `application/json`.',
)
_CONFLICTS = (
    conflict(
        'Concurrent requests changed the same objects, and the retries failed.',
        errors.CONCURRENT_UPDATE,
    ),
    conflict(
        'The change repeatedly violates a key constraint of the database, and Placement cannot '
        'find the conflicting row.'
    ),
)
_TOO_LARGE = Failure(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    'The body is larger than the configured limit.',
)
_UNSUPPORTED_MEDIA_TYPE = Failure(
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    'The media type of the body is not `application/json`.',
)
_UNEXPECTED = Failure(HTTPStatus.INTERNAL_SERVER_ERROR, 'The request failed unexpectedly.')
_UNAVAILABLE = Failure(
    HTTPStatus.SERVICE_UNAVAILABLE,
    'The database or the identity service is unavailable.',
)

_VERSION_HEADERS = frozenset({'OpenStack-API-Version', 'Vary'})
_CACHING_HEADERS = frozenset({'Last-Modified', 'Cache-Control'})


@dataclass(frozen=True, slots=True)
class Response:
    """The response of an operation with one status in one microversion.

    :ivar reasons: what the service did, or why the request failed; the response has at least one
    :ivar body: the schema of the JSON body; None if the response has no body
    :ivar headers: the headers that every such response has
    :ivar optional_headers: the headers that such a response can have
    """

    status: HTTPStatus
    reasons: tuple[Success | Failure, ...]
    body: Schema | None
    headers: frozenset[str]
    optional_headers: frozenset[str] = frozenset()

    @property
    def codes(self) -> frozenset[str]:
        """Return the error codes that a response with this status can have."""
        return frozenset(reason.code for reason in self.reasons if isinstance(reason, Failure))

    def merged(self, earlier: 'Response') -> 'Response':
        """Return this response with the reasons and the headers of an earlier microversion."""
        always = self.headers & earlier.headers
        return Response(
            self.status,
            tuple(dict.fromkeys((*self.reasons, *earlier.reasons))),
            self.body,
            always,
            (self.headers | self.optional_headers | earlier.headers | earlier.optional_headers)
            - always,
        )


def responses(operation: Operation, version: Version) -> list[Response]:
    """Return the responses of an operation in a microversion, in the order of the status."""
    found = [_success(one, version) for one in operation.successes if one.applies(version)]
    by_status: dict[HTTPStatus, list[Failure]] = {}
    for failure in failures(operation, version):
        by_status.setdefault(failure.status, []).append(failure)
    found += [_failure(status, reasons, version) for status, reasons in by_status.items()]
    return sorted(found, key=lambda response: response.status)


def failures(operation: Operation, version: Version) -> Iterator[Failure]:
    """Yield the reasons for which a request for an operation fails in a microversion.

    The reasons that many operations have in common follow from the kind of the operation.
    """
    has_body = operation.body_at(version) is not None
    yield from _unreadable_requests(operation, has_body)
    if operation.declared.rule is not None:
        yield from _REFUSALS
    yield from (failure for failure in operation.failures if failure.applies(version))
    yield _UNSUPPORTED_VERSION
    if operation.declared.accepts:
        yield _NOT_ACCEPTABLE
    if operation.declared.method != 'GET':
        yield from _CONFLICTS
    yield _TOO_LARGE
    if has_body:
        yield _UNSUPPORTED_MEDIA_TYPE
    yield _UNEXPECTED
    if operation.declared.rule is not None:
        yield _UNAVAILABLE


def _unreadable_requests(operation: Operation, has_body: bool) -> Iterator[Failure]:
    yield bad('The microversion is malformed.')
    yield bad(
        'The header `Content-Length` is not an integer, or the request has a body and no header '
        '`Content-Type`.'
    )
    if operation.query is not None:
        yield bad(
            'The query string is not valid UTF-8, contains a NUL character, or has a parameter '
            'that is unknown, missing, or invalid.'
        )
    if has_body:
        yield bad('The body is not valid JSON, or violates the schema.')
        yield bad('The body names more objects than the database accepts in one statement.')
    if has_body or operation.query or '{' in operation.declared.path:
        yield bad('The request contains a value that the database cannot store.')


def _success(success: Success, version: Version) -> Response:
    headers = {'X-Openstack-Request-Id', *_VERSION_HEADERS}
    if version >= microversion.LAST_MODIFIED and (success.body is not None or success.cached):
        headers |= _CACHING_HEADERS
    if success.location:
        headers.add('Location')
    body = None if success.body is None else success.body.pick(version)
    optional = frozenset() if success.optional is None else frozenset({success.optional})
    return Response(success.status, (success,), body, frozenset(headers), optional)


def _failure(status: HTTPStatus, reasons: list[Failure], version: Version) -> Response:
    headers, optional = {'X-Openstack-Request-Id'}, set()
    if status == HTTPStatus.UNAUTHORIZED:
        optional.add('WWW-Authenticate')
    elif status in EARLY_STATUSES:
        optional |= _VERSION_HEADERS
    else:
        headers |= _VERSION_HEADERS
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.add('Retry-After')
    return Response(
        status,
        tuple(reasons),
        _error_body(status, version),
        frozenset(headers),
        frozenset(optional),
    )


def _error_body(status: HTTPStatus, version: Version) -> Schema:
    if status == HTTPStatus.UNAUTHORIZED:
        return error_bodies.UNAUTHORIZED
    if status == HTTPStatus.BAD_REQUEST:
        return error_bodies.BAD_REQUEST.pick(version)
    if status in EARLY_STATUSES:
        return error_bodies.EARLY_ERROR
    return error_bodies.ERROR.pick(version)
