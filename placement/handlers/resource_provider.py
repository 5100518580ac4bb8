"""Handlers of /resource_providers."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
import uuid as uuid_lib

import webob

from placement import exception, grammar, microversion, wsgi_wrapper
from placement.handlers import body
from placement.http import reply, request
from placement.microversion import Version
from placement.objects import provider_search, resource_provider
from placement.objects.provider_rows import Provider
from placement.objects.provider_search import ListedProvider
from placement.policies import resource_provider as policies
from placement.schemas import resource_provider as schemas


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def list_resource_providers(req: webob.Request) -> webob.Response:
    """GET /resource_providers: list the providers that match all filters of the query."""
    version = request.version(req)
    request.context(req).can(policies.LIST)
    providers, last_modified = provider_search.list_matching(_filters(req, version))
    render = _renderer(version, request.mount_prefix(req))
    document = {'resource_providers': [render(provider) for provider in providers]}
    return reply.json_reply(req, document, last_modified=last_modified)


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
def create_resource_provider(req: webob.Request) -> webob.Response:
    """POST /resource_providers: create a provider."""
    version = request.version(req)
    request.context(req).can(policies.CREATE)
    data = request.extract_json(req, schemas.POST.pick(version))
    uuid = request.normalize_uuid(data['uuid']) if 'uuid' in data else str(uuid_lib.uuid4())
    _require_name(uuid, data['name'])
    provider = resource_provider.create(uuid, data['name'], data.get('parent_provider_uuid'))
    location = _path(provider.uuid)
    if version < microversion.PROVIDER_POST_RETURNS_BODY:
        return reply.empty_reply(req, HTTPStatus.CREATED, location)
    document = _renderer(version, request.mount_prefix(req))(provider)
    return reply.json_reply(req, document, location=location)


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def get_resource_provider(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}: show one provider."""
    request.context(req).can(policies.SHOW)
    provider = resource_provider.get(request.path_item(req, 'uuid'))
    document = _renderer(request.version(req), request.mount_prefix(req))(provider)
    return reply.json_reply(req, document, last_modified=reply.newest([provider]))


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
def update_resource_provider(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}: rename a provider, or move it to another parent."""
    version = request.version(req)
    request.context(req).can(policies.UPDATE)
    uuid = request.path_item(req, 'uuid')
    data = body.about_provider(req, uuid, schemas.PUT.pick(version))
    if not data['name']:
        resource_provider.get(uuid)
    _require_name(uuid, data['name'])
    provider = resource_provider.update(
        uuid,
        data['name'],
        data.get('parent_provider_uuid', resource_provider.KEEP_PARENT),
        may_reparent=version >= microversion.REPARENTING,
    )
    document = _renderer(version, request.mount_prefix(req))(provider)
    return reply.json_reply(req, document)


@wsgi_wrapper.PlacementWsgify
def delete_resource_provider(req: webob.Request) -> webob.Response:
    """DELETE /resource_providers/{uuid}: delete a provider."""
    request.context(req).can(policies.DELETE)
    resource_provider.delete(request.path_item(req, 'uuid'))
    return reply.empty_reply(req)


def _filters(req: webob.Request, version: Version) -> provider_search.Filters:
    """Return the filters in the query string.

    :raises exception.BadInput: a parameter is unknown or invalid
    """
    items = request.query_items(req.environ)
    last = request.validate_query(items, schemas.QUERY.pick(version))
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
    items: list[tuple[str, str]], version: Version
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


def _path(uuid: str) -> str:
    return f'/resource_providers/{uuid}'


def _renderer(
    version: Version, prefix: str
) -> Callable[[Provider | ListedProvider], dict[str, Any]]:
    """Return a function that renders a provider as the document of a microversion.

    :param prefix: the path at which the API is mounted
    """
    base = f'{prefix}/resource_providers/'
    tails = [(name, f'/{name}') for name, since in schemas.LINKS if version >= since]
    nested = version >= microversion.NESTED_PROVIDERS

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
