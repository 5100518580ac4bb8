"""The operations of the API, in one module for each entity.

Each handler has the declaration of its operation above it. The checks of a request that it declares
come first. Then the handler calls one function and builds the response.
"""

from placement.handlers import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    reshaper,
    resource_class,
    resource_provider,
    root,
    total_usage,
    trait,
    usage,
)
from placement.handlers.operation import Operation

# The order of the paths in the documents, and in the sample of the policy.
_MODULES = (
    root,
    resource_class,
    resource_provider,
    inventory,
    usage,
    aggregate,
    allocation,
    allocation_candidate,
    trait,
    total_usage,
    reshaper,
)
# Path -> HTTP method -> operation, in the order in which the modules declare them. The Allow header
# of a 405 Method Not Allowed response lists the methods in this order.
OPERATIONS: dict[str, dict[str, Operation]] = {}
for _module in _MODULES:
    for _one in vars(_module).values():
        if isinstance(_one, Operation):
            OPERATIONS.setdefault(_one.path, {})[_one.method] = _one
