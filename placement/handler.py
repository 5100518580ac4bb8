"""The map from paths and methods to handlers, and the dispatcher that calls the handlers."""

from collections.abc import Iterable, Mapping

from placement import exception
from placement.handlers import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    reshaper,
    resource_class,
    resource_provider,
    root,
    trait,
    usage,
)
from placement.http import Application, Environ, StartResponse, errors
from placement.http.request import check_body_headers

# Path -> HTTP method -> handler. `{name}` matches one segment that is not empty. The Allow header
# of a 405 Method Not Allowed response lists the methods in the order of this map.
ROUTE_DECLARATIONS: dict[str, dict[str, Application]] = {
    '': {
        'GET': root.home,
    },
    '/': {
        'GET': root.home,
    },
    '/resource_classes': {
        'GET': resource_class.list_resource_classes,
        'POST': resource_class.create_resource_class,
    },
    '/resource_classes/{name}': {
        'GET': resource_class.get_resource_class,
        'PUT': resource_class.update_resource_class,
        'DELETE': resource_class.delete_resource_class,
    },
    '/resource_providers': {
        'GET': resource_provider.list_resource_providers,
        'POST': resource_provider.create_resource_provider,
    },
    '/resource_providers/{uuid}': {
        'GET': resource_provider.get_resource_provider,
        'DELETE': resource_provider.delete_resource_provider,
        'PUT': resource_provider.update_resource_provider,
    },
    '/resource_providers/{uuid}/inventories': {
        'GET': inventory.get_inventories,
        'POST': inventory.create_inventory,
        'PUT': inventory.set_inventories,
        'DELETE': inventory.delete_inventories,
    },
    '/resource_providers/{uuid}/inventories/{resource_class}': {
        'GET': inventory.get_inventory,
        'PUT': inventory.update_inventory,
        'DELETE': inventory.delete_inventory,
    },
    '/resource_providers/{uuid}/usages': {
        'GET': usage.list_usages,
    },
    '/resource_providers/{uuid}/aggregates': {
        'GET': aggregate.get_aggregates,
        'PUT': aggregate.set_aggregates,
    },
    '/resource_providers/{uuid}/allocations': {
        'GET': allocation.list_for_resource_provider,
    },
    '/allocations': {
        'POST': allocation.set_allocations,
    },
    '/allocations/{consumer_uuid}': {
        'GET': allocation.list_for_consumer,
        'PUT': allocation.set_allocations_for_consumer,
        'DELETE': allocation.delete_allocations,
    },
    '/allocation_candidates': {
        'GET': allocation_candidate.list_allocation_candidates,
    },
    '/traits': {
        'GET': trait.list_traits,
    },
    '/traits/{name}': {
        'GET': trait.get_trait,
        'PUT': trait.put_trait,
        'DELETE': trait.delete_trait,
    },
    '/resource_providers/{uuid}/traits': {
        'GET': trait.list_traits_for_resource_provider,
        'PUT': trait.update_traits_for_resource_provider,
        'DELETE': trait.delete_traits_for_resource_provider,
    },
    '/usages': {
        'GET': usage.get_total_usages,
    },
    '/reshaper': {
        'POST': reshaper.reshape,
    },
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
