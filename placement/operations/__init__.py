"""The declarations of all operations of the API.

`OPERATIONS` has the same paths and methods as `placement.handler.ROUTE_DECLARATIONS`. The API
reference and the OpenAPI documents are generated from it.
"""

from placement.operations import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    resource_class,
    resource_provider,
    root,
    trait,
    usage,
)
from placement.operations.model import Operation

# Path -> HTTP method -> the declaration.
OPERATIONS: dict[str, dict[str, Operation]] = {
    '': {
        'GET': root.LIST,
    },
    '/': {
        'GET': root.LIST,
    },
    '/resource_classes': {
        'GET': resource_class.LIST,
        'POST': resource_class.CREATE,
    },
    '/resource_classes/{name}': {
        'GET': resource_class.SHOW,
        'PUT': resource_class.UPDATE,
        'DELETE': resource_class.DELETE,
    },
    '/resource_providers': {
        'GET': resource_provider.LIST,
        'POST': resource_provider.CREATE,
    },
    '/resource_providers/{uuid}': {
        'GET': resource_provider.SHOW,
        'DELETE': resource_provider.DELETE,
        'PUT': resource_provider.UPDATE,
    },
    '/resource_providers/{uuid}/inventories': {
        'GET': inventory.LIST,
        'POST': inventory.CREATE,
        'PUT': inventory.UPDATE_ALL,
        'DELETE': inventory.DELETE_ALL,
    },
    '/resource_providers/{uuid}/inventories/{resource_class}': {
        'GET': inventory.SHOW,
        'PUT': inventory.UPDATE,
        'DELETE': inventory.DELETE,
    },
    '/resource_providers/{uuid}/usages': {
        'GET': usage.PROVIDER_LIST,
    },
    '/resource_providers/{uuid}/aggregates': {
        'GET': aggregate.LIST,
        'PUT': aggregate.UPDATE,
    },
    '/resource_providers/{uuid}/allocations': {
        'GET': allocation.PROVIDER_LIST,
    },
    '/allocations': {
        'POST': allocation.MANAGE,
    },
    '/allocations/{consumer_uuid}': {
        'GET': allocation.LIST,
        'PUT': allocation.UPDATE,
        'DELETE': allocation.DELETE,
    },
    '/allocation_candidates': {
        'GET': allocation_candidate.LIST,
    },
    '/traits': {
        'GET': trait.LIST,
    },
    '/traits/{name}': {
        'GET': trait.SHOW,
        'PUT': trait.UPDATE,
        'DELETE': trait.DELETE,
    },
    '/resource_providers/{uuid}/traits': {
        'GET': trait.PROVIDER_LIST,
        'PUT': trait.PROVIDER_UPDATE,
        'DELETE': trait.PROVIDER_DELETE,
    },
    '/usages': {
        'GET': usage.LIST,
    },
    '/reshaper': {
        'POST': allocation.RESHAPE,
    },
}
