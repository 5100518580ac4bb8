"""The declarations of allocations."""

from http import HTTPStatus

from placement import errors, exception, microversion
from placement.handlers import allocation as handlers
from placement.microversion import MIN_VERSION
from placement.operations.operation import (
    NO_PROVIDER,
    Operation,
    PathCheck,
    Rule,
    Success,
    bad,
    conflict,
    missing,
)
from placement.schemas import allocation as schemas
from placement.schemas import common

# The failures of every request that writes allocations.
CLAIM_FAILURES = (
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
    method='POST',
    path='/allocations',
    handler=handlers.set_allocations,
    title='Manage allocations',
    text=(
        'Replaces the allocations of several consumers. Placement writes the allocations of all '
        'consumers, or of none.'
    ),
    since=microversion.POST_ALLOCATIONS,
    policy=Rule('placement:allocations:manage', 'Replace the allocations of several consumers.'),
    writes=True,
    body=schemas.POST,
    successes=(_WRITTEN,),
    failures=CLAIM_FAILURES,
)

LIST = Operation(
    method='GET',
    path='/allocations/{consumer_uuid}',
    handler=handlers.list_for_consumer,
    title='List allocations',
    text=(
        'Lists the allocations of a consumer. If the consumer does not exist, `allocations` is '
        'empty.'
    ),
    since=MIN_VERSION,
    policy=Rule('placement:allocations:list', 'List the allocations of a consumer.'),
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The allocations.', body=schemas.CONSUMER),),
)

UPDATE = Operation(
    method='PUT',
    path='/allocations/{consumer_uuid}',
    handler=handlers.set_allocations_for_consumer,
    title='Update allocations',
    text=(
        'Replaces the allocations of a consumer. Placement releases the allocations that the '
        'request does not contain. It increments the generation of the consumer and of each '
        'resource provider in the request. If the request removes all allocations of the consumer, '
        'Placement increments the generations of the providers of these allocations.'
    ),
    since=MIN_VERSION,
    policy=Rule('placement:allocations:update', 'Replace the allocations of a consumer.'),
    writes=True,
    path_check=PathCheck(
        'consumer_uuid', common.UUID, lambda text, _: exception.InvalidConsumerUuid(text)
    ),
    body=schemas.PUT,
    successes=(_WRITTEN,),
    failures=(bad('The consumer UUID in the path is not a UUID.'), *CLAIM_FAILURES),
)

DELETE = Operation(
    method='DELETE',
    path='/allocations/{consumer_uuid}',
    handler=handlers.delete_allocations,
    title='Delete allocations',
    text=(
        'Releases all allocations of a consumer. Placement does not check the generation of the '
        'consumer.'
    ),
    since=MIN_VERSION,
    policy=Rule('placement:allocations:delete', 'Delete the allocations of a consumer.'),
    writes=True,
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='Placement released the allocations.'),),
    failures=(missing('The consumer has no allocations.'),),
)

PROVIDER_LIST = Operation(
    method='GET',
    path='/resource_providers/{uuid}/allocations',
    handler=handlers.list_for_resource_provider,
    title='List resource provider allocations',
    text='Lists the allocations against a resource provider.',
    since=MIN_VERSION,
    policy=Rule(
        'placement:resource_providers:allocations:list',
        'List the allocations of a resource provider.',
    ),
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The allocations.', body=schemas.PROVIDER),),
    failures=(NO_PROVIDER,),
)
