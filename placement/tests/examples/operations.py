"""The operations that the examples show."""

from urllib.parse import urlsplit

from placement import handler

# Path template -> method -> the anchor of the operation in the API reference.
SLUGS = {
    '/': {'GET': 'list-versions'},
    '/resource_classes': {'GET': 'list-resource-classes', 'POST': 'create-resource-class'},
    '/resource_classes/{name}': {
        'GET': 'show-resource-class',
        'PUT': 'update-resource-class',
        'DELETE': 'delete-resource-class',
    },
    '/resource_providers': {'GET': 'list-resource-providers', 'POST': 'create-resource-provider'},
    '/resource_providers/{uuid}': {
        'GET': 'show-resource-provider',
        'DELETE': 'delete-resource-provider',
        'PUT': 'update-resource-provider',
    },
    '/resource_providers/{uuid}/inventories': {
        'GET': 'list-resource-provider-inventories',
        'POST': 'create-resource-provider-inventory',
        'PUT': 'update-resource-provider-inventories',
        'DELETE': 'delete-resource-provider-inventories',
    },
    '/resource_providers/{uuid}/inventories/{resource_class}': {
        'GET': 'show-resource-provider-inventory',
        'PUT': 'update-resource-provider-inventory',
        'DELETE': 'delete-resource-provider-inventory',
    },
    '/resource_providers/{uuid}/usages': {'GET': 'list-resource-provider-usages'},
    '/resource_providers/{uuid}/aggregates': {
        'GET': 'list-resource-provider-aggregates',
        'PUT': 'update-resource-provider-aggregates',
    },
    '/resource_providers/{uuid}/allocations': {'GET': 'list-resource-provider-allocations'},
    '/allocations': {'POST': 'manage-allocations'},
    '/allocations/{consumer_uuid}': {
        'GET': 'list-allocations',
        'PUT': 'update-allocations',
        'DELETE': 'delete-allocations',
    },
    '/allocation_candidates': {'GET': 'list-allocation-candidates'},
    '/traits': {'GET': 'list-traits'},
    '/traits/{name}': {'GET': 'show-traits', 'PUT': 'update-traits', 'DELETE': 'delete-traits'},
    '/resource_providers/{uuid}/traits': {
        'GET': 'list-resource-provider-traits',
        'PUT': 'update-resource-provider-traits',
        'DELETE': 'delete-resource-provider-traits',
    },
    '/usages': {'GET': 'list-usages'},
    '/reshaper': {'POST': 'reshaper'},
}

_mapper = handler.Mapper(handler.ROUTE_DECLARATIONS)


def slug_of(method: str, url: str) -> str | None:
    """Return the anchor of the operation of a request, or None if there is no such operation."""
    match = _mapper.match(urlsplit(url).path)
    return SLUGS[match[0].template].get(method) if match else None
