"""The declarations of /resource_providers."""

from http import HTTPStatus

from placement import errors, microversion
from placement.handlers import resource_provider as handlers
from placement.microversion import MIN_VERSION
from placement.operations import parameters
from placement.operations.operation import (
    NO_PROVIDER,
    Change,
    Operation,
    Rule,
    Success,
    bad,
    conflict,
)
from placement.schemas import resource_provider as schemas

_NO_PARENT = bad('The parent does not exist.', since=microversion.NESTED_PROVIDERS)
_EMPTY_NAME = bad('The name is empty.')

_QUERY = (
    parameters.single(
        'name', MIN_VERSION, {'type': 'string'}, 'Selects the provider with this name.'
    ),
    parameters.single('uuid', MIN_VERSION, parameters.UUID, 'Selects the provider with this UUID.'),
    parameters.member_of(
        microversion.PROVIDERS_MEMBER_OF,
        'Selects the providers in an aggregate. The value is the UUID of an aggregate, or `in:` '
        'and several UUIDs, separated by commas. With `in:`, a provider must be in at least one of '
        'the aggregates.',
        changes=(
            parameters.REPEATED_MEMBER_OF,
            Change(
                '`!` before the value selects the providers that are in none of the aggregates.',
                since=microversion.FORBIDDEN_AGGREGATES,
            ),
        ),
    ),
    parameters.resources(
        microversion.PROVIDERS_RESOURCES,
        'Selects the providers from which each of these amounts can be allocated. The value is a '
        'list of `CLASS:AMOUNT`, separated by commas, for example `VCPU:2,MEMORY_MB:1024`.',
    ),
    parameters.single(
        'in_tree',
        microversion.NESTED_PROVIDERS,
        parameters.UUID,
        'Selects the providers of the tree that contains the provider with this UUID.',
    ),
    parameters.required(
        microversion.PROVIDERS_REQUIRED,
        'Selects the providers that have all of these traits, separated by commas.',
        changes=(
            Change(
                '`!` before a trait selects the providers without the trait.',
                since=microversion.FORBIDDEN_TRAITS,
            ),
        ),
    ),
)

LIST = Operation(
    method='GET',
    path='/resource_providers',
    handler=handlers.list_resource_providers,
    title='List resource providers',
    text='Lists the resource providers that match all parameters of the query.',
    changes=(
        Change(
            'all parameters except `in_tree` apply to the provider itself, not to the other '
            'providers of its tree.',
            since=microversion.NESTED_PROVIDERS,
        ),
    ),
    since=MIN_VERSION,
    policy=Rule('placement:resource_providers:list', 'List resource providers.'),
    accepts=True,
    query=_QUERY,
    successes=(
        Success(status=HTTPStatus.OK, when='The resource providers.', body=schemas.PROVIDERS),
    ),
    failures=(
        bad(
            '`member_of` is repeated.',
            since=microversion.PROVIDERS_MEMBER_OF,
            until=microversion.REPEATED_MEMBER_OF.before(),
        ),
        bad(
            'A resource class in `resources` does not exist.',
            since=microversion.PROVIDERS_RESOURCES,
        ),
        bad('A trait in `required` does not exist.', since=microversion.PROVIDERS_REQUIRED),
    ),
)

_CREATED = 'Placement created the resource provider.'

CREATE = Operation(
    method='POST',
    path='/resource_providers',
    handler=handlers.create_resource_provider,
    title='Create resource provider',
    text='Creates a resource provider.',
    since=MIN_VERSION,
    policy=Rule('placement:resource_providers:create', 'Create a resource provider.'),
    writes=True,
    body=schemas.POST,
    successes=(
        Success(
            status=HTTPStatus.CREATED,
            when=_CREATED,
            location=True,
            until=microversion.PROVIDER_POST_RETURNS_BODY.before(),
        ),
        Success(
            status=HTTPStatus.OK,
            when=_CREATED,
            body=schemas.CREATED_PROVIDER,
            location=True,
            since=microversion.PROVIDER_POST_RETURNS_BODY,
        ),
    ),
    failures=(
        _EMPTY_NAME,
        _NO_PARENT,
        bad('The parent is the provider itself.', since=microversion.NESTED_PROVIDERS),
        conflict('Another provider has the name or the UUID.', errors.DUPLICATE_NAME),
    ),
)

SHOW = Operation(
    method='GET',
    path='/resource_providers/{uuid}',
    handler=handlers.get_resource_provider,
    title='Show resource provider',
    text='Shows one resource provider.',
    since=MIN_VERSION,
    policy=Rule('placement:resource_providers:show', 'Show a resource provider.'),
    accepts=True,
    successes=(
        Success(status=HTTPStatus.OK, when='The resource provider.', body=schemas.PROVIDER),
    ),
    failures=(NO_PROVIDER,),
)

UPDATE = Operation(
    method='PUT',
    path='/resource_providers/{uuid}',
    handler=handlers.update_resource_provider,
    title='Update resource provider',
    text='Renames a resource provider. The generation of the provider does not change.',
    changes=(
        Change(
            'the request can set the parent of a root provider. All descendants of the provider '
            'move with it.',
            since=microversion.NESTED_PROVIDERS,
        ),
        Change(
            'the request can also change or remove the parent of a provider.',
            since=microversion.REPARENTING,
        ),
    ),
    since=MIN_VERSION,
    policy=Rule('placement:resource_providers:update', 'Update a resource provider.'),
    writes=True,
    body=schemas.PUT,
    successes=(
        Success(
            status=HTTPStatus.OK,
            when='Placement updated the resource provider.',
            body=schemas.PROVIDER,
        ),
    ),
    failures=(
        _EMPTY_NAME,
        _NO_PARENT,
        bad(
            'The parent is the provider itself or one of its descendants.',
            since=microversion.NESTED_PROVIDERS,
        ),
        bad(
            'The provider has a parent, and the request changes or removes it.',
            since=microversion.NESTED_PROVIDERS,
            until=microversion.REPARENTING.before(),
        ),
        NO_PROVIDER,
        conflict('Another provider has the name.', errors.DUPLICATE_NAME),
    ),
)

DELETE = Operation(
    method='DELETE',
    path='/resource_providers/{uuid}',
    handler=handlers.delete_resource_provider,
    title='Delete resource provider',
    text=(
        'Deletes a resource provider, its inventories, and its associations with traits and '
        'aggregates.'
    ),
    since=MIN_VERSION,
    policy=Rule('placement:resource_providers:delete', 'Delete a resource provider.'),
    writes=True,
    successes=(
        Success(status=HTTPStatus.NO_CONTENT, when='Placement deleted the resource provider.'),
    ),
    failures=(
        NO_PROVIDER,
        conflict('The provider has children.', errors.PROVIDER_CANNOT_DELETE_PARENT),
        conflict('The provider has allocations.', errors.PROVIDER_IN_USE),
    ),
)
