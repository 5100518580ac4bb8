"""The map from paths and methods to handlers, and the dispatcher that calls the handlers."""

from collections.abc import Iterable, Mapping

from placement import exception
from placement.http import Application, Environ, StartResponse, errors
from placement.http.request import check_body_headers
from placement.operations import OPERATIONS

# Path -> HTTP method -> handler. The Allow header of a 405 Method Not Allowed response lists the
# methods in the order of this map.
ROUTE_DECLARATIONS: dict[str, dict[str, Application]] = {
    path: {method: operation.handler for method, operation in methods.items()}
    for path, methods in OPERATIONS.items()
}


class Route:
    """The handlers of one path, by HTTP method, and the names of the path parameters.

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
    """Checks Content-Length and Content-Type, and calls the handler of the route."""

    def __init__(
        self, declarations: Mapping[str, Mapping[str, Application]] = ROUTE_DECLARATIONS
    ) -> None:
        self._mapper = Mapper(declarations)

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
        """Return the handler of a request, and store the path parameters in the environment."""
        check_body_headers(environ)
        match = self._mapper.match(_path(environ))
        if match is None:
            raise exception.RouteNotFound
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
