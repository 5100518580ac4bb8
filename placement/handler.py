"""The map from paths and methods to handlers, and the dispatcher compiled from it."""

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

# Path -> method -> handler. `{name}` is one segment of at least one character. A response with
# 405 Method Not Allowed lists the methods in this order.
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
    """The handlers of one path."""

    __slots__ = ('allow', 'methods', 'names')

    def __init__(self, methods: Mapping[str, Application], names: tuple[str, ...]) -> None:
        self.methods = dict(methods)
        self.names = names
        self.allow = ', '.join(methods)


class _Node:
    """A segment of the declared paths: its possible successors and the route that it ends."""

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
            node.route = Route(methods, tuple(names))

    def match(self, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route of a path and the values of its parameters, None if there is none."""
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
    """Checks the headers of the body and calls the handler of the route."""

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

    def _dispatch(self, environ: Environ) -> Application:
        """Return the handler of a request and add the path parameters to the environment."""
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
    """Return the path below the mount point, as text.

    Bytes that are not UTF-8, and NUL, are replaced with the replacement character, which every
    database accepts and no name contains. The object of such a path does not exist.
    """
    path: str = environ.get('PATH_INFO', '')
    if not path.isascii():
        path = path.encode('latin-1').decode('utf-8', errors='replace')
    return path.replace('\0', '\N{REPLACEMENT CHARACTER}')
