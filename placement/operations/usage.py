"""The declarations of the usages of a resource provider and of the usages of a project."""

from http import HTTPStatus

from placement import microversion
from placement.handlers import usage as handlers
from placement.microversion import MIN_VERSION, Variants
from placement.operations import parameters
from placement.operations.operation import NO_PROVIDER, Operation, Parameter, Rule, Schema, Success
from placement.schemas import usage as schemas

# Any text that begins with `all` is accepted.
_CONSUMER_TYPE: Schema = {
    **parameters.IDENTIFIER,
    'pattern': r'^[A-Z0-9_]+\Z|^all|^unknown\Z',
}


PROVIDER_LIST = Operation(
    method='GET',
    path='/resource_providers/{uuid}/usages',
    handler=handlers.list_usages,
    title='List resource provider usages',
    text='Shows the usage of each inventory of a resource provider.',
    since=MIN_VERSION,
    policy=Rule('placement:resource_providers:usages', 'Show the usages of a resource provider.'),
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The usages.', body=schemas.PROVIDER_USAGES),),
    failures=(NO_PROVIDER,),
)

LIST = Operation(
    method='GET',
    path='/usages',
    handler=handlers.get_total_usages,
    title='List usages',
    text=(
        'Returns the usages of a project, or of one user in a project. The response omits resource '
        'classes and consumer types without allocations. For an unknown project, `usages` is empty.'
    ),
    since=microversion.USAGES,
    policy=Rule(
        'placement:usages',
        'Show the total usages of a project, or of a user in a project.',
        check='rule:admin_or_project_reader_or_service_api',
        target='project_id',
    ),
    accepts=True,
    query=(
        Parameter(
            name='project_id',
            text='The identifier of the project.',
            value=Variants({microversion.USAGES: parameters.IDENTIFIER}),
            required_until=microversion.MAX_VERSION,
        ),
        parameters.single(
            'user_id',
            microversion.USAGES,
            parameters.IDENTIFIER,
            'Selects the consumers of this user.',
        ),
        parameters.single(
            'consumer_type',
            microversion.CONSUMER_TYPES,
            _CONSUMER_TYPE,
            'Selects the consumers of this type. With `unknown`, selects the consumers without a '
            'type. With `all`, the response contains all consumers in one group.',
        ),
    ),
    successes=(Success(status=HTTPStatus.OK, when='The usages.', body=schemas.USAGES),),
)
