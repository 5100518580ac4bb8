"""The declarations of /traits and of the traits of a resource provider."""

from http import HTTPStatus

from placement import exception, microversion
from placement.handlers import trait as handlers
from placement.microversion import Variants
from placement.operations import parameters
from placement.operations.operation import (
    NO_PROVIDER,
    STALE_PROVIDER,
    Operation,
    PathCheck,
    Rule,
    Success,
    bad,
    conflict,
    missing,
)
from placement.schemas import trait as schemas

_MISSING = missing('The trait does not exist.')

LIST = Operation(
    method='GET',
    path='/traits',
    handler=handlers.list_traits,
    title='List traits',
    text='Lists the names of all traits, or of the traits that match the query.',
    since=microversion.TRAITS,
    policy=Rule('placement:traits:list', 'List traits.'),
    accepts=True,
    query=(
        parameters.single(
            'name',
            microversion.TRAITS,
            schemas.NAME_FILTER,
            'With `in:` and names, separated by commas: selects the existing traits among these '
            'names. With `startswith:` and a prefix: selects the traits whose names begin with the '
            'prefix. Placement ignores any other operator.',
        ),
        parameters.single(
            'associated',
            microversion.TRAITS,
            schemas.ASSOCIATED_FILTER,
            'With `true`: selects the traits that at least one resource provider has. With '
            '`false`: selects the traits that no resource provider has.',
        ),
    ),
    successes=(Success(status=HTTPStatus.OK, when='The traits.', body=schemas.TRAITS),),
)

SHOW = Operation(
    method='GET',
    path='/traits/{name}',
    handler=handlers.get_trait,
    title='Show traits',
    text='Checks whether a trait exists.',
    since=microversion.TRAITS,
    policy=Rule('placement:traits:show', 'Check whether a trait exists.'),
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='The trait exists.', cached=True),),
    failures=(_MISSING,),
)

UPDATE = Operation(
    method='PUT',
    path='/traits/{name}',
    handler=handlers.put_trait,
    title='Update traits',
    text='Creates a custom trait if it does not exist.',
    since=microversion.TRAITS,
    policy=Rule('placement:traits:update', 'Create a trait if it does not exist.'),
    writes=True,
    path_check=PathCheck('name', schemas.NAME, exception.InvalidName),
    successes=(
        Success(
            status=HTTPStatus.CREATED,
            when='Placement created the trait.',
            location=True,
            cached=True,
        ),
        Success(
            status=HTTPStatus.NO_CONTENT,
            when='The trait already exists.',
            location=True,
            cached=True,
        ),
    ),
    failures=(
        bad('The name is not a valid name for a custom trait.'),
        conflict('Another trait has a name that the database treats as equal.'),
    ),
)

DELETE = Operation(
    method='DELETE',
    path='/traits/{name}',
    handler=handlers.delete_trait,
    title='Delete traits',
    text='Deletes a custom trait.',
    since=microversion.TRAITS,
    policy=Rule('placement:traits:delete', 'Delete a trait.'),
    writes=True,
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='Placement deleted the trait.'),),
    failures=(
        bad('The trait is a standard trait.'),
        _MISSING,
        conflict('At least one resource provider has the trait.'),
    ),
)

PROVIDER_LIST = Operation(
    method='GET',
    path='/resource_providers/{uuid}/traits',
    handler=handlers.list_traits_for_resource_provider,
    title='List resource provider traits',
    text='Lists the traits of a resource provider.',
    since=microversion.TRAITS,
    policy=Rule(
        'placement:resource_providers:traits:list', 'List the traits of a resource provider.'
    ),
    accepts=True,
    successes=(Success(status=HTTPStatus.OK, when='The traits.', body=schemas.PROVIDER_TRAITS),),
    failures=(NO_PROVIDER,),
)

PROVIDER_UPDATE = Operation(
    method='PUT',
    path='/resource_providers/{uuid}/traits',
    handler=handlers.update_traits_for_resource_provider,
    title='Update resource provider traits',
    text=(
        'Replaces the traits of a resource provider. Placement increments the generation of the '
        'resource provider if its traits change.'
    ),
    since=microversion.TRAITS,
    policy=Rule(
        'placement:resource_providers:traits:update', 'Replace the traits of a resource provider.'
    ),
    writes=True,
    body=Variants({microversion.TRAITS: schemas.PUT_TRAITS}),
    body_first=True,
    successes=(
        Success(
            status=HTTPStatus.OK,
            when='Placement replaced the traits.',
            body=schemas.PROVIDER_TRAITS,
        ),
    ),
    failures=(bad('A trait does not exist.'), NO_PROVIDER, STALE_PROVIDER),
)

PROVIDER_DELETE = Operation(
    method='DELETE',
    path='/resource_providers/{uuid}/traits',
    handler=handlers.delete_traits_for_resource_provider,
    title='Delete resource provider traits',
    text=(
        'Removes all traits from a resource provider. Placement increments the generation of the '
        'resource provider if its traits change, without checking it.'
    ),
    since=microversion.TRAITS,
    policy=Rule(
        'placement:resource_providers:traits:delete', 'Remove all traits from a resource provider.'
    ),
    writes=True,
    successes=(Success(status=HTTPStatus.NO_CONTENT, when='Placement removed the traits.'),),
    failures=(NO_PROVIDER,),
)
