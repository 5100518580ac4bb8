"""The declarations of allocations and of the reshaper."""

from http import HTTPStatus

from placement import errors, microversion
from placement.microversion import MIN_VERSION
from placement.operations.model import (
    NO_PROVIDER,
    STALE_PROVIDER,
    Operation,
    Success,
    bad,
    conflict,
    missing,
)
from placement.policies import allocation as policies
from placement.policies import reshaper as reshaper_policies
from placement.schemas import allocation as schemas
from placement.schemas import reshaper as reshaper_schemas

# The failures of every request that writes allocations.
_CLAIM = (
    bad('A resource provider of the allocations does not exist.'),
    bad('A resource class does not exist.'),
    bad('Two names or UUIDs are different, but the database treats them as equal.'),
    conflict(
        'The generation of a consumer does not match the stored generation. The message contains '
        '`consumer generation conflict`.',
        errors.CONCURRENT_UPDATE,
        since=microversion.CONSUMER_GENERATION,
    ),
    conflict('A resource provider has no inventory of a requested resource class.'),
    conflict(
        'An amount does not conform to `min_unit`, `max_unit`, or `step_size` of the inventory.'
    ),
    conflict(
        'The usage after the request would exceed both the capacity and the usage before the '
        'request.'
    ),
)
_WRITTEN = Success(status=HTTPStatus.NO_CONTENT, when='Placement wrote the allocations.')

MANAGE = Operation(
    title='Manage allocations',
    text=(
        'Replaces the allocations of several consumers. Placement writes the allocations of all '
        'consumers, or of none.'
    ),
    since=microversion.POST_ALLOCATIONS,
    policy=policies.MANAGE,
    writes=True,
    body=schemas.POST,
    successes=(_WRITTEN,),
    failures=_CLAIM,
)

LIST = Operation(
    title='List allocations',
    text=(
        'Lists the allocations of a consumer. If the consumer does not exist, `allocations` is '
        'empty.'
    ),
    since=MIN_VERSION,
    policy=policies.LIST,
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The allocations.', body=schemas.CONSUMER),),
)

UPDATE = Operation(
    title='Update allocations',
    text=(
        'Replaces the allocations of a consumer. Placement releases the allocations that the '
        'request does not contain. It increments the generation of the consumer and of each '
        'resource provider in the request. If the request removes all allocations of the consumer, '
        'Placement increments the generations of the providers of these allocations.'
    ),
    since=MIN_VERSION,
    policy=policies.UPDATE,
    writes=True,
    body=schemas.PUT,
    successes=(_WRITTEN,),
    failures=(bad('The consumer UUID in the path is not a UUID.'), *_CLAIM),
)

DELETE = Operation(
    title='Delete allocations',
    text=(
        'Releases all allocations of a consumer. Placement does not check the generation of the '
        'consumer.'
    ),
    since=MIN_VERSION,
    policy=policies.DELETE,
    writes=True,
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='Placement released the allocations.'),),
    failures=(missing('The consumer has no allocations.'),),
)

PROVIDER_LIST = Operation(
    title='List resource provider allocations',
    text='Lists the allocations against a resource provider.',
    since=MIN_VERSION,
    policy=policies.PROVIDER_LIST,
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The allocations.', body=schemas.PROVIDER),),
    failures=(NO_PROVIDER,),
)

RESHAPE = Operation(
    title='Reshaper',
    text=(
        'Replaces the inventories of several resource providers and the allocations of several '
        'consumers in one transaction. Placement writes everything or nothing.'
    ),
    since=microversion.RESHAPER,
    policy=reshaper_policies.RESHAPE,
    writes=True,
    body=reshaper_schemas.POST,
    successes=(
        Success(
            status=HTTPStatus.NO_CONTENT, when='Placement wrote the inventories and allocations.'
        ),
    ),
    failures=(
        bad(
            'A resource provider of the inventories does not exist.',
            errors.RESOURCE_PROVIDER_NOT_FOUND,
        ),
        STALE_PROVIDER,
        *_CLAIM,
        conflict(
            'The request removes an inventory against which allocations remain.',
            errors.INVENTORY_INUSE,
        ),
    ),
)
