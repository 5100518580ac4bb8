"""/traits, and the traits of a resource provider."""

from collections.abc import Iterable
from http import HTTPStatus

from placement import exception, microversion
from placement.handlers.operation import Parameter, PathCheck, Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import trait
from placement.schemas import CUSTOM_NAME, GENERATION, IDENTIFIER, closed


@operation(
    'GET /traits',
    since=microversion.TRAITS,
    rule=Rule('placement:traits:list', 'List traits.'),
    query={
        # Any other operator before the colon is ignored.
        'name': Parameter(
            {
                'type': 'string',
                'pattern': ':',
                'description': "a filter in the form 'in:NAME,NAME' or 'startswith:PREFIX'",
            }
        ),
        'associated': Parameter(
            {
                'type': 'string',
                'pattern': r'^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\Z',
                'description': "'true' or 'false'",
            }
        ),
    },
)
def list_traits(call: Call) -> Reply:
    """List the names of all traits, or of the traits that match the query."""
    operator, _, operand = call.query.get('name', '').partition(':')
    associated = call.query.get('associated')
    traits = trait.list_matching(
        names=operand.split(',') if operator == 'in' else None,
        prefix=operand if operator == 'startswith' else None,
        associated=None if associated is None else associated.lower() == 'true',
    )
    return reply.json_reply(call, {'traits': _names(traits)}, last_modified=reply.newest(traits))


@operation(
    'GET /traits/{name}',
    since=microversion.TRAITS,
    rule=Rule('placement:traits:show', 'Check whether a trait exists.'),
    accepts=False,
)
def get_trait(call: Call) -> Reply:
    """Return 204 No Content if the trait exists."""
    existing = trait.get(call.path['name'])
    return reply.empty_reply(call, last_modified=reply.newest([existing]))


@operation(
    'PUT /traits/{name}',
    since=microversion.TRAITS,
    rule=Rule('placement:traits:update', 'Create a trait if it does not exist.'),
    path_check=PathCheck('name', CUSTOM_NAME, exception.InvalidName),
)
def put_trait(call: Call) -> Reply:
    """Ensure that a custom trait exists."""
    name = call.path['name']
    stored, created = trait.ensure(name)
    return reply.empty_reply(
        call,
        HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT,
        location=f'/traits/{name}',
        last_modified=reply.newest([stored]),
    )


@operation(
    'DELETE /traits/{name}',
    since=microversion.TRAITS,
    rule=Rule('placement:traits:delete', 'Delete a trait.'),
)
def delete_trait(call: Call) -> Reply:
    """Delete a custom trait."""
    trait.delete(call.path['name'])
    return reply.empty_reply(call)


@operation(
    'GET /resource_providers/{uuid}/traits',
    since=microversion.TRAITS,
    rule=Rule(
        'placement:resource_providers:traits:list', 'List the traits of a resource provider.'
    ),
)
def list_traits_for_resource_provider(call: Call) -> Reply:
    """List the traits of a provider."""
    generation, traits = trait.list_by_provider(call.path['uuid'])
    return _provider_reply(call, generation, traits)


@operation(
    'PUT /resource_providers/{uuid}/traits',
    since=microversion.TRAITS,
    rule=Rule(
        'placement:resource_providers:traits:update', 'Replace the traits of a resource provider.'
    ),
    body=closed(
        {
            'traits': {'type': 'array', 'items': IDENTIFIER},
            'resource_provider_generation': GENERATION,
        }
    ),
    body_first=True,
)
def update_traits_for_resource_provider(call: Call) -> Reply:
    """Replace the traits of a provider."""
    generation, traits = trait.replace_on_provider(
        call.path['uuid'],
        int(call.body['resource_provider_generation']),
        call.body['traits'],
    )
    return _provider_reply(call, generation, traits)


@operation(
    'DELETE /resource_providers/{uuid}/traits',
    since=microversion.TRAITS,
    rule=Rule(
        'placement:resource_providers:traits:delete', 'Remove all traits from a resource provider.'
    ),
)
def delete_traits_for_resource_provider(call: Call) -> Reply:
    """Remove all traits from a provider."""
    trait.clear_on_provider(call.path['uuid'])
    return reply.empty_reply(call)


def _names(traits: Iterable[trait.Trait]) -> list[str]:
    return [one.name for one in traits]


def _provider_reply(call: Call, generation: int, traits: list[trait.Trait]) -> Reply:
    document = {'traits': _names(traits), 'resource_provider_generation': generation}
    return reply.json_reply(call, document, last_modified=reply.newest(traits))
