"""The declarations of the aggregates of a resource provider."""

from http import HTTPStatus

from placement import errors, microversion
from placement.handlers import aggregate as handlers
from placement.operations.operation import NO_PROVIDER, Change, Operation, Rule, Success, conflict
from placement.schemas import aggregate as schemas

LIST = Operation(
    method='GET',
    path='/resource_providers/{uuid}/aggregates',
    handler=handlers.get_aggregates,
    title='List resource provider aggregates',
    text='Lists the aggregates of a resource provider.',
    since=microversion.AGGREGATES,
    policy=Rule(
        'placement:resource_providers:aggregates:list',
        'List the aggregates of a resource provider.',
    ),
    accepts=True,
    media_type_first=True,
    successes=(Success(status=HTTPStatus.OK, when='The aggregates.', body=schemas.AGGREGATES),),
    failures=(NO_PROVIDER,),
)

UPDATE = Operation(
    method='PUT',
    path='/resource_providers/{uuid}/aggregates',
    handler=handlers.set_aggregates,
    title='Update resource provider aggregates',
    text=(
        'Replaces the aggregates of a resource provider. Placement creates an aggregate when a '
        'request names it for the first time.'
    ),
    changes=(
        Change(
            'Placement checks and increments the generation of the resource provider.',
            since=microversion.AGGREGATE_GENERATION,
        ),
    ),
    since=microversion.AGGREGATES,
    policy=Rule(
        'placement:resource_providers:aggregates:update',
        'Replace the aggregates of a resource provider.',
    ),
    writes=True,
    body=schemas.PUT,
    media_type_first=True,
    successes=(
        Success(
            status=HTTPStatus.OK, when='Placement replaced the aggregates.', body=schemas.AGGREGATES
        ),
    ),
    failures=(
        NO_PROVIDER,
        conflict(
            'The generation of the resource provider does not match the stored generation.',
            errors.CONCURRENT_UPDATE,
            since=microversion.AGGREGATE_GENERATION,
        ),
    ),
)
