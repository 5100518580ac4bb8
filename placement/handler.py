"""The map from paths and methods to handlers, and the dispatcher compiled from it."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from placement import util
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

# Path -> method -> handler. `{name}` is one segment of at least one character. The order of
# the methods is the order in which a 405 lists them.
ROUTE_DECLARATIONS: dict[str, dict[str, util.Application]] = {
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
    """What answers at one path."""

    __slots__ = ('allow', 'methods', 'names')

    def __init__(self, methods: Mapping[str, util.Application], names: tuple[str, ...]):
        self.methods = dict(methods)
        self.names = names
        self.allow = ', '.join(methods)


class _Node:
    """One segment of the paths: what may follow it, and the route that ends here."""

    __slots__ = ('fixed', 'parameter', 'route')

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.route: Route | None = None


class Mapper:
    """Finds the route of a path with one dictionary lookup for each of its segments."""

    def __init__(self, declarations: Mapping[str, Mapping[str, util.Application]]):
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
        """The route of a path and the texts that stand for its parameters; None without one."""
        node, values = self._root, []
        for segment in path.split('/'):
            following = node.fixed.get(segment)
            if following is None:
                following = node.parameter
                if following is None or not segment:
                    return None
                values.append(segment)
            node = following
        if node.route is None:
            return None
        return node.route, dict(zip(node.route.names, values, strict=True))


class PlacementHandler:
    """Checks what all requests have in common and hands over to the handler of the route."""

    def __init__(
        self, declarations: Mapping[str, Mapping[str, util.Application]] = ROUTE_DECLARATIONS
    ):
        self._mapper = Mapper(declarations)

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        problem = _body_headers_problem(environ)
        if problem:
            refusal = util.error_response(environ, HTTPStatus.BAD_REQUEST, problem)
            return refusal(environ, start_response)
        found = self._mapper.match(_path(environ))
        if found is None:
            missing = util.error_response(
                environ, HTTPStatus.NOT_FOUND, 'The resource could not be found.'
            )
            return missing(environ, start_response)
        route, parameters = found
        method = environ['REQUEST_METHOD']
        application = route.methods.get(method)
        if application is None:
            refusal = util.error_response(
                environ,
                HTTPStatus.METHOD_NOT_ALLOWED,
                f'The method {method} is not allowed for this resource.',
                headers=[('allow', route.allow)],
            )
            return refusal(environ, start_response)
        environ['wsgiorg.routing_args'] = ((), parameters)
        return application(environ, start_response)


def _body_headers_problem(environ: util.Environ) -> str | None:
    """What is wrong with the headers that announce a body."""
    text = environ.get('CONTENT_LENGTH')
    if not text:
        return None
    try:
        length = int(text)
    except ValueError:
        return 'The header Content-Length must be an integer.'
    if length > 0 and not environ.get('CONTENT_TYPE'):
        return 'A request with a body needs the header Content-Type.'
    return None


def _path(environ: util.Environ) -> str:
    """The path below the mount point, as text.

    Bytes that are no UTF-8, and NUL, become the replacement character. No name has it, and
    every database takes it, so what such a path asks for is simply not there.
    """
    path: str = environ.get('PATH_INFO', '')
    if not path.isascii():
        path = path.encode('latin-1').decode('utf-8', errors='replace')
    return path.replace('\0', '\N{REPLACEMENT CHARACTER}')
