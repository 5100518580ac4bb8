"""The dispatcher, and the checks of requests, both derived from the operations of `handlers`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
import functools
from typing import Any

from placement import exception, microversion, validation
from placement.handlers import OPERATIONS
from placement.handlers.operation import Operation, PathCheck
from placement.http import ENVIRON_CONTEXT, Application, Environ, StartResponse, errors
from placement.http.reply import Call, Reply
from placement.http.request import (
    check_acceptable,
    check_body_headers,
    check_content_type,
    check_query,
    query_items,
    read_json,
    validate_query,
)
from placement.microversion import Version
from placement.objects import resource_provider
from placement.schemas import Schema

Check = Callable[[Environ], None]

_VERSIONS = [microversion.of_text(text) for text in microversion.VERSIONS]


@dataclass(frozen=True, slots=True)
class _Checks:
    """The checks of an operation in one microversion, apart from the policy.

    :ivar first: the checks of the microversion and of the media type, in their order
    :ivar query: the schema of the last values of the query parameters
    :ivar later: the query parameters of later microversions, with their first microversion
    """

    first: tuple[Check, ...]
    query: Schema | None
    later: Mapping[str, Version]
    path: PathCheck | None
    body: Schema | None


class OperationApplication:
    """The WSGI application of an operation: makes the declared checks, and calls the handler.

    The order of the checks is a part of the API (`placement.handlers.operation`).

    :param path_since: the first microversion of the path
    """

    def __init__(self, operation: Operation, path_since: Version) -> None:
        self.operation = operation
        # What depends on the microversion is decided when the service starts.
        self._checks = {version: _checks(operation, path_since, version) for version in _VERSIONS}
        # All paths with a UUID of this name begin with `/resource_providers/{uuid}`.
        self._provider_first = '{uuid}' in operation.path and not operation.body_first

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        try:
            reply = self._serve(environ)
        except exception.PlacementException as exc:
            refusal: Iterable[bytes] = errors.response(environ, exc)(environ, start_response)
            return refusal
        start_response(reply.status, reply.headers)
        return reply.body

    def _serve(self, environ: Environ) -> Reply:
        version = environ[microversion.ENVIRON_KEY]
        checks = self._checks[version]
        for check in checks.first:
            check(environ)
        items = self._authorize(environ)
        query = {} if checks.query is None else validate_query(items, checks.query, checks.later)
        path = environ['wsgiorg.routing_args'][1]
        if checks.path is not None:
            value = path[checks.path.name]
            problem = validation.problem(checks.path.schema, value)
            if problem:
                raise checks.path.refusal(value, problem)
        body = None if checks.body is None else self._read_body(environ, path, checks.body)
        return self.operation.handler(Call(environ, version, path, items, query, body))

    def _authorize(self, environ: Environ) -> Sequence[tuple[str, str]]:
        """Check the policy, and return the names and values of the query parameters."""
        rule = self.operation.rule
        if rule is None:
            return ()
        context = environ[ENVIRON_CONTEXT]
        if rule.target is None:
            context.can(rule.name)
            return () if self.operation.query is None else query_items(environ)
        # The rule depends on a parameter, but is checked before the query string is validated.
        items = query_items(environ)
        context.can(rule.name, {key: value for key, value in items if key == rule.target})
        return items

    def _read_body(self, environ: Environ, path: Mapping[str, str], schema: Schema) -> Any:
        """Return the document in the body, after validating it by a schema.

        :raises exception.BadInput: the body is invalid
        :raises exception.ResourceProviderNotFound: the body is invalid, and the provider in the
            path does not exist. If the body is valid, the handler detects a missing provider, so
            the provider is not read here
        """
        try:
            return read_json(environ, schema)
        except exception.BadInput:
            if self._provider_first:
                resource_provider.get(path['uuid'])
            raise


def _checks(operation: Operation, path_since: Version, version: Version) -> _Checks:
    exists = version >= operation.since
    # If the media type is checked first, it is checked even if the operation does not exist.
    body = operation.body_at(max(version, operation.since))
    first: list[Check] = []
    if not exists:
        refuse = _route_not_found if version < path_since else _method_not_allowed
        first.append(functools.partial(refuse, operation.since))
    if operation.accepts:
        first.append(check_acceptable)
    elif body is not None:
        first.append(check_content_type)
    if operation.media_type_first:
        first.reverse()
    check = operation.path_check
    return _Checks(
        first=tuple(first),
        query=operation.query_at(version),
        later={
            name: one.since for name, one in (operation.query or {}).items() if one.since > version
        },
        path=check if check is not None and version >= check.since else None,
        body=body,
    )


def _route_not_found(since: Version, environ: Environ) -> None:
    raise exception.RouteNotFound(microversion.only_since(since, environ))


def _method_not_allowed(since: Version, environ: Environ) -> None:
    """Refuse a method that is new in a later microversion, although the path exists."""
    later = microversion.only_since(since, environ)
    raise exception.MethodNotAllowed(environ['REQUEST_METHOD'], later=later)


def _applications(operations: Mapping[str, Operation]) -> dict[str, Application]:
    """Return the applications of a path, by HTTP method."""
    path_since = min(operation.since for operation in operations.values())
    return {
        method: OperationApplication(operation, path_since)
        for method, operation in operations.items()
    }


# Path -> HTTP method -> application. The Allow header of a 405 Method Not Allowed response lists
# the methods in the order of this map.
ROUTE_DECLARATIONS: dict[str, dict[str, Application]] = {
    path: _applications(operations) for path, operations in OPERATIONS.items()
}


class Route:
    """The applications of one path, by HTTP method, and the names of the path parameters.

    :ivar template: the path with the names of the parameters, for example `/traits/{name}`
    """

    __slots__ = ('allow', 'methods', 'names', 'template')

    def __init__(
        self, template: str, methods: Mapping[str, Application], names: tuple[str, ...]
    ) -> None:
        self.template = template
        self.methods = dict(methods)
        self.names = names
        self.allow = ', '.join(methods)


class _Node:
    """A path segment in a tree: the segments that may follow, and the route of the path so far."""

    __slots__ = ('fixed', 'parameter', 'route')

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.route: Route | None = None


class Mapper:
    """Maps a path to its route with one dictionary lookup for each segment."""

    def __init__(self, declarations: Mapping[str, Mapping[str, Application]]) -> None:
        self._root = _Node()
        for path, methods in declarations.items():
            node, names = self._root, []
            for segment in path.split('/'):
                if segment.startswith('{'):
                    names.append(segment.strip('{}'))
                    node.parameter = node = node.parameter or _Node()
                else:
                    node = node.fixed.setdefault(segment, _Node())
            node.route = Route(path or '/', methods, tuple(names))

    def match(self, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route and the path parameters of a path, or None if no route matches."""
        node, values = self._root, []
        for segment in path.split('/'):
            successor = node.fixed.get(segment)
            if successor is None:
                successor = node.parameter
                if successor is None or not segment:
                    return None
                values.append(segment)
            node = successor
        if node.route is None:
            return None
        return node.route, dict(zip(node.route.names, values, strict=True))


class PlacementHandler:
    """Checks headers and the query string, and calls the application of the route."""

    def __init__(
        self, declarations: Mapping[str, Mapping[str, Application]] = ROUTE_DECLARATIONS
    ) -> None:
        self._mapper = Mapper(declarations)
        self._paths = list(declarations)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        try:
            application = self._dispatch(environ)
        except exception.PlacementException as exc:
            refusal: Iterable[bytes] = errors.response(environ, exc)(environ, start_response)
            return refusal
        return application(environ, start_response)

    def template(self, environ: Environ) -> str | None:
        """Return the path template of the route of a request, or None if no route matches."""
        match = self._mapper.match(_path(environ))
        return match[0].template if match else None

    def _dispatch(self, environ: Environ) -> Application:
        """Return the application of a request, and store the path parameters in `environ`."""
        check_query(environ)
        check_body_headers(environ)
        path = _path(environ)
        match = self._mapper.match(path)
        if match is None:
            raise exception.RouteNotFound(question=exception.did_you_mean([path], self._paths))
        route, parameters = match
        method = environ['REQUEST_METHOD']
        application = route.methods.get(method)
        if application is None:
            raise exception.MethodNotAllowed(method, route.allow)
        environ['wsgiorg.routing_args'] = ((), parameters)
        return application


def _path(environ: Environ) -> str:
    """Return the path of a request, relative to the mount point.

    Invalid UTF-8 and NUL characters are replaced with U+FFFD, the replacement character. Every
    database accepts this character, and no valid name or UUID contains it, so no object matches.
    """
    path: str = environ.get('PATH_INFO', '')
    if not path.isascii():
        path = path.encode('latin-1').decode('utf-8', errors='replace')
    return path.replace('\0', '\N{REPLACEMENT CHARACTER}')
