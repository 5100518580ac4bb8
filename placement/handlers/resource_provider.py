"""/resource_providers."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
import uuid as uuid_lib

from placement import exception, grammar, microversion
from placement.handlers.operation import Parameter, Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import MIN_VERSION, Variants, Version
from placement.objects import provider_search, resource_provider
from placement.objects.provider_rows import Provider
from placement.objects.provider_search import ListedProvider
from placement.schemas import HYPHENATED_UUID, PROVIDER_NAME, TEXT, UUID, Schema, closed

# The links of a provider other than `self`, and the microversion that added each link.
LINKS: Final = (
    ('inventories', microversion.MIN_VERSION),
    ('usages', microversion.MIN_VERSION),
    ('aggregates', microversion.AGGREGATES),
    ('traits', microversion.TRAITS),
    ('allocations', microversion.ALLOCATIONS_LINK),
)

_PARENT: Schema = {'type': ['string', 'null'], 'format': 'uuid'}


def _body(properties: dict[str, Schema]) -> Variants[Schema | None]:
    """Return the schema of a body with a name and some other properties."""
    nested = {**properties, 'parent_provider_uuid': _PARENT}
    return Variants(
        {
            MIN_VERSION: closed(properties, ['name']),
            microversion.NESTED_PROVIDERS: closed(nested, ['name']),
        }
    )


@operation(
    'GET /resource_providers',
    since=MIN_VERSION,
    rule=Rule('placement:resource_providers:list', 'List resource providers.'),
    query={
        'name': Parameter(TEXT),
        'uuid': Parameter(HYPHENATED_UUID),
        'member_of': Parameter(TEXT, since=microversion.PROVIDERS_MEMBER_OF),
        'resources': Parameter(TEXT, since=microversion.PROVIDERS_RESOURCES),
        'in_tree': Parameter(HYPHENATED_UUID, since=microversion.NESTED_PROVIDERS),
        'required': Parameter(TEXT, since=microversion.PROVIDERS_REQUIRED),
    },
)
def list_resource_providers(call: Call) -> Reply:
    """List the providers that match all filters of the query."""
    filters = parse_filters(call.items, call.query, call.version)
    providers, last_modified = provider_search.list_matching(filters)
    render = _renderer(call)
    document = {'resource_providers': [render(provider) for provider in providers]}
    return reply.json_reply(call, document, last_modified=last_modified)


@operation(
    'POST /resource_providers',
    since=MIN_VERSION,
    rule=Rule('placement:resource_providers:create', 'Create a resource provider.'),
    body=_body({'name': PROVIDER_NAME, 'uuid': UUID}),
)
def create_resource_provider(call: Call) -> Reply:
    """Create a provider."""
    data = call.body
    uuid = grammar.normalize_uuid(data['uuid']) if 'uuid' in data else str(uuid_lib.uuid4())
    _require_name(uuid, data['name'])
    provider = resource_provider.create(uuid, data['name'], data.get('parent_provider_uuid'))
    location = f'/resource_providers/{provider.uuid}'
    if call.version < microversion.PROVIDER_POST_RETURNS_BODY:
        return reply.empty_reply(call, HTTPStatus.CREATED, location)
    return reply.json_reply(call, _renderer(call)(provider), location=location)


@operation(
    'GET /resource_providers/{uuid}',
    since=MIN_VERSION,
    rule=Rule('placement:resource_providers:show', 'Show a resource provider.'),
)
def get_resource_provider(call: Call) -> Reply:
    """Show one provider."""
    provider = resource_provider.get(call.path['uuid'])
    document = _renderer(call)(provider)
    return reply.json_reply(call, document, last_modified=reply.newest([provider]))


@operation(
    'DELETE /resource_providers/{uuid}',
    since=MIN_VERSION,
    rule=Rule('placement:resource_providers:delete', 'Delete a resource provider.'),
)
def delete_resource_provider(call: Call) -> Reply:
    """Delete a provider."""
    resource_provider.delete(call.path['uuid'])
    return reply.empty_reply(call)


@operation(
    'PUT /resource_providers/{uuid}',
    since=MIN_VERSION,
    rule=Rule('placement:resource_providers:update', 'Update a resource provider.'),
    body=_body({'name': PROVIDER_NAME}),
)
def update_resource_provider(call: Call) -> Reply:
    """Rename a provider, or move it to another parent."""
    uuid, data = call.path['uuid'], call.body
    if not data['name']:
        resource_provider.get(uuid)
    _require_name(uuid, data['name'])
    provider = resource_provider.update(
        uuid,
        data['name'],
        data.get('parent_provider_uuid', resource_provider.KEEP_PARENT),
        may_reparent=call.version >= microversion.REPARENTING,
    )
    return reply.json_reply(call, _renderer(call)(provider))


def parse_filters(
    items: Sequence[tuple[str, str]], last: Mapping[str, str], version: Version
) -> provider_search.Filters:
    """Return the filters in the query string.

    :param items: the names and values of the query parameters, in order
    :param last: the last value of each query parameter, validated
    :raises exception.BadInput: a value is invalid
    """
    member_of, forbidden_aggregates = grammar.parse_member_of(
        [value for key, value in items if key == 'member_of'],
        allow_forbidden=version >= microversion.FORBIDDEN_AGGREGATES,
        allow_many=version >= microversion.REPEATED_MEMBER_OF,
    )
    required, forbidden = _traits(items, version)
    amounts = grammar.parse_resources(last['resources']) if 'resources' in last else {}
    return provider_search.Filters(
        name=last.get('name') or None,
        uuid=last.get('uuid'),
        in_tree=last.get('in_tree'),
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
        required=required,
        forbidden=forbidden,
        amounts=amounts,
    )


def _traits(
    items: Sequence[tuple[str, str]], version: Version
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Return the required and the forbidden traits in the query string.

    Before microversion 1.39, if `required` is repeated, Placement uses only its last value.
    """
    values = [value for key, value in items if key == 'required']
    if version < microversion.ANY_TRAITS:
        values = values[-1:]
    return grammar.parse_repeated_required(
        values,
        allow_forbidden=version >= microversion.FORBIDDEN_TRAITS,
        allow_any=version >= microversion.ANY_TRAITS,
    )


def _require_name(uuid: str, name: str) -> None:
    if not name:
        raise exception.ResourceProviderNameMissing(uuid)


def _renderer(call: Call) -> Callable[[Provider | ListedProvider], dict[str, Any]]:
    """Return a function that renders a provider as the document of the microversion."""
    base = f'{call.mount_prefix}/resource_providers/'
    tails = [(name, f'/{name}') for name, since in LINKS if call.version >= since]
    nested = call.version >= microversion.NESTED_PROVIDERS

    def render(provider: Provider | ListedProvider) -> dict[str, Any]:
        path = base + provider.uuid
        document: dict[str, Any] = {
            'uuid': provider.uuid,
            'name': provider.name,
            'generation': provider.generation,
            'links': [
                {'rel': 'self', 'href': path},
                *[{'rel': name, 'href': path + tail} for name, tail in tails],
            ],
        }
        if nested:
            document['parent_provider_uuid'] = provider.parent_uuid
            document['root_provider_uuid'] = provider.root_uuid
        return document

    return render
