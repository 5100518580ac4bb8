"""The declarations of the inventories of a resource provider."""

from http import HTTPStatus

from placement import errors, microversion
from placement.handlers import inventory as handlers
from placement.microversion import MIN_VERSION, Variants
from placement.operations.operation import (
    NO_PROVIDER,
    STALE_PROVIDER,
    Operation,
    Rule,
    Success,
    bad,
    conflict,
    missing,
)
from placement.schemas import inventory as schemas

# The rule for the capacity, as of the microversions before and since 1.26.
_CAPACITY = (
    bad(
        'The capacity of an inventory, truncated to an integer, is less than 1.',
        until=microversion.RESERVED_MAY_EQUAL_TOTAL.before(),
    ),
    bad(
        'The capacity of an inventory, truncated to an integer, is negative.',
        since=microversion.RESERVED_MAY_EQUAL_TOTAL,
    ),
)
_NO_CLASS = bad('A resource class does not exist.')
_NO_INVENTORY = missing(
    'The resource provider does not exist, or has no inventory of the resource class.'
)
# Each of these rules protects two operations.
_UPDATE_RULE = Rule(
    'placement:resource_providers:inventories:update',
    'Replace all inventories of a resource provider, or the inventory of one class.',
)
_DELETE_RULE = Rule(
    'placement:resource_providers:inventories:delete',
    'Delete all inventories of a resource provider, or the inventory of one class.',
)

LIST = Operation(
    method='GET',
    path='/resource_providers/{uuid}/inventories',
    handler=handlers.get_inventories,
    title='List resource provider inventories',
    text='Lists all inventories of a resource provider.',
    since=MIN_VERSION,
    policy=Rule(
        'placement:resource_providers:inventories:list',
        'List the inventories of a resource provider.',
    ),
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The inventories.', body=schemas.INVENTORIES),),
    failures=(NO_PROVIDER,),
)

CREATE = Operation(
    method='POST',
    path='/resource_providers/{uuid}/inventories',
    handler=handlers.create_inventory,
    title='Create resource provider inventory',
    text=(
        'Creates the inventory of one resource class. Placement increments the generation of the '
        'resource provider, and ignores the generation in the request.'
    ),
    since=MIN_VERSION,
    policy=Rule(
        'placement:resource_providers:inventories:create',
        'Create the inventory of one class of a resource provider.',
    ),
    writes=True,
    body=Variants({MIN_VERSION: schemas.POST_INVENTORY}),
    successes=(
        Success(
            status=HTTPStatus.CREATED,
            when='Placement created the inventory.',
            body=schemas.INVENTORY,
            location=True,
        ),
    ),
    failures=(
        *_CAPACITY,
        _NO_CLASS,
        NO_PROVIDER,
        conflict(
            'The provider already has an inventory of the resource class.',
            errors.CONCURRENT_UPDATE,
        ),
    ),
)

SHOW = Operation(
    method='GET',
    path='/resource_providers/{uuid}/inventories/{resource_class}',
    handler=handlers.get_inventory,
    title='Show resource provider inventory',
    text='Shows the inventory of one resource class.',
    since=MIN_VERSION,
    policy=Rule(
        'placement:resource_providers:inventories:show',
        'Show the inventory of one class of a resource provider.',
    ),
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The inventory.', body=schemas.INVENTORY),),
    failures=(_NO_INVENTORY,),
)

UPDATE_ALL = Operation(
    method='PUT',
    path='/resource_providers/{uuid}/inventories',
    handler=handlers.set_inventories,
    title='Update resource provider inventories',
    text=(
        'Replaces all inventories of a resource provider. Placement deletes the inventories that '
        'the request does not contain, and increments the generation of the resource provider. A '
        'field that the request omits gets its default value.'
    ),
    since=MIN_VERSION,
    policy=_UPDATE_RULE,
    writes=True,
    body=Variants({MIN_VERSION: schemas.PUT_INVENTORIES}),
    successes=(
        Success(
            status=HTTPStatus.OK,
            when='Placement replaced the inventories.',
            body=schemas.INVENTORIES,
        ),
    ),
    failures=(
        *_CAPACITY,
        _NO_CLASS,
        NO_PROVIDER,
        STALE_PROVIDER,
        conflict(
            'The request omits a resource class against which allocations exist.',
            errors.INVENTORY_INUSE,
        ),
    ),
)

UPDATE = Operation(
    method='PUT',
    path='/resource_providers/{uuid}/inventories/{resource_class}',
    handler=handlers.update_inventory,
    title='Update resource provider inventory',
    text=(
        'Replaces the inventory of one resource class. Placement increments the generation of the '
        'resource provider. A field that the request omits gets its default value.'
    ),
    since=MIN_VERSION,
    policy=_UPDATE_RULE,
    writes=True,
    body=Variants({MIN_VERSION: schemas.PUT_INVENTORY}),
    successes=(
        Success(
            status=HTTPStatus.OK, when='Placement replaced the inventory.', body=schemas.INVENTORY
        ),
    ),
    failures=(
        *_CAPACITY,
        bad('The provider has no inventory of the resource class.'),
        missing('The resource provider or the resource class does not exist.'),
        STALE_PROVIDER,
    ),
)

DELETE_ALL = Operation(
    method='DELETE',
    path='/resource_providers/{uuid}/inventories',
    handler=handlers.delete_inventories,
    title='Delete resource provider inventories',
    text=(
        'Deletes all inventories of a resource provider. Placement increments the generation of '
        'the resource provider without checking it.'
    ),
    since=microversion.DELETE_INVENTORIES,
    policy=_DELETE_RULE,
    writes=True,
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='Placement deleted the inventories.'),),
    failures=(
        NO_PROVIDER,
        conflict('Allocations against an inventory exist.', errors.INVENTORY_INUSE),
    ),
)

DELETE = Operation(
    method='DELETE',
    path='/resource_providers/{uuid}/inventories/{resource_class}',
    handler=handlers.delete_inventory,
    title='Delete resource provider inventory',
    text=(
        'Deletes the inventory of one resource class. Placement increments the generation of the '
        'resource provider without checking it.'
    ),
    since=MIN_VERSION,
    policy=_DELETE_RULE,
    writes=True,
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='Placement deleted the inventory.'),),
    failures=(
        _NO_INVENTORY,
        conflict('Allocations against the inventory exist.', errors.CONCURRENT_UPDATE),
    ),
)
