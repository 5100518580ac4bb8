"""The declarations of all operations of the API.

Everything else that depends on an operation is derived from its declaration when the service
starts: the route, the checks of a request, and the rules of the policy. The API reference and the
OpenAPI documents are generated from the declarations.
"""

from collections.abc import Iterable

from placement.operations import (
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
from placement.operations.operation import Operation


def _by_path(operations: Iterable[Operation]) -> dict[str, dict[str, Operation]]:
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


# Path -> HTTP method -> the declaration. The Allow header of a 405 Method Not Allowed response
# lists the methods of a path in the order of this map, and the documents list the paths.
OPERATIONS = _by_path(
    (
        root.LIST_AT_MOUNT_POINT,
        root.LIST,
        resource_class.LIST,
        resource_class.CREATE,
        resource_class.SHOW,
        resource_class.UPDATE,
        resource_class.DELETE,
        resource_provider.LIST,
        resource_provider.CREATE,
        resource_provider.SHOW,
        resource_provider.DELETE,
        resource_provider.UPDATE,
        inventory.LIST,
        inventory.CREATE,
        inventory.UPDATE_ALL,
        inventory.DELETE_ALL,
        inventory.SHOW,
        inventory.UPDATE,
        inventory.DELETE,
        usage.PROVIDER_LIST,
        aggregate.LIST,
        aggregate.UPDATE,
        allocation.PROVIDER_LIST,
        allocation.MANAGE,
        allocation.LIST,
        allocation.UPDATE,
        allocation.DELETE,
        allocation_candidate.LIST,
        trait.LIST,
        trait.SHOW,
        trait.UPDATE,
        trait.DELETE,
        trait.PROVIDER_LIST,
        trait.PROVIDER_UPDATE,
        trait.PROVIDER_DELETE,
        usage.LIST,
        reshaper.RESHAPE,
    )
)
