"""Handlers of /resource_providers."""

from collections.abc import Callable, Sequence
import functools
from http import HTTPStatus
import operator
import re
from typing import Any, Protocol
import uuid as uuid_lib

import orjson
import webob

from placement import exception, grammar, microversion, util, wsgi_wrapper
from placement.handlers import body
from placement.microversion import Version
from placement.objects import provider_search, resource_provider
from placement.policies import resource_provider as policies
from placement.schemas import resource_provider as schemas

# Resources below a provider that its links name, with the microversion that has each.
_LINKS = (
    ('inventories', microversion.MIN_VERSION),
    ('usages', microversion.MIN_VERSION),
    ('aggregates', microversion.AGGREGATES),
    ('traits', microversion.TRAITS),
    ('allocations', microversion.ALLOCATIONS_LINK),
)


class ProviderRow(Protocol):
    """What is shown of a provider."""

    @property
    def uuid(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def parent_uuid(self) -> str | None: ...
    @property
    def root_uuid(self) -> str: ...


@wsgi_wrapper.PlacementWsgify
@util.check_accept(util.JSON)
def list_resource_providers(req: webob.Request) -> webob.Response:
    """GET /resource_providers: those that meet all filters of the query."""
    version = util.version(req)
    util.context(req).can(policies.LIST)
    found, last_modified = provider_search.find(_filters(req, version))
    render = _list_renderer(version, util.mount_prefix(req))
    document = {'resource_providers': [render(provider) for provider in found]}
    return util.json_reply(req, document, last_modified=last_modified)


@wsgi_wrapper.PlacementWsgify
@util.require_content(util.JSON)
def create_resource_provider(req: webob.Request) -> webob.Response:
    """POST /resource_providers."""
    version = util.version(req)
    util.context(req).can(policies.CREATE)
    data = util.extract_json(req, schemas.POST.pick(version))
    uuid = util.normalize_uuid(data['uuid']) if 'uuid' in data else str(uuid_lib.uuid4())
    _require_name(uuid, data['name'])
    provider = resource_provider.create(uuid, data['name'], data.get('parent_provider_uuid'))
    location = _path(provider.uuid)
    if version < microversion.PROVIDER_POST_RETURNS_BODY:
        return util.empty_reply(req, HTTPStatus.CREATED, location)
    document = _renderer(version, util.mount_prefix(req))(provider)
    return util.json_reply(req, document, location=location)


@wsgi_wrapper.PlacementWsgify
@util.check_accept(util.JSON)
def get_resource_provider(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}."""
    util.context(req).can(policies.SHOW)
    provider = resource_provider.get(util.path_item(req, 'uuid'))
    document = _renderer(util.version(req), util.mount_prefix(req))(provider)
    return util.json_reply(req, document, last_modified=util.newest([provider]))


@wsgi_wrapper.PlacementWsgify
@util.require_content(util.JSON)
def update_resource_provider(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}: rename it, or give it another parent."""
    version = util.version(req)
    util.context(req).can(policies.UPDATE)
    uuid = util.path_item(req, 'uuid')
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
    document = _renderer(version, util.mount_prefix(req))(provider)
    return util.json_reply(req, document)


@wsgi_wrapper.PlacementWsgify
def delete_resource_provider(req: webob.Request) -> webob.Response:
    """DELETE /resource_providers/{uuid}."""
    util.context(req).can(policies.DELETE)
    resource_provider.delete(util.path_item(req, 'uuid'))
    return util.empty_reply(req)


def _filters(req: webob.Request, version: Version) -> provider_search.Filters:
    """The filters of a query. Raises BadInput for one that cannot be read."""
    items = util.query_items(req.environ)
    last = util.validate_query(items, schemas.QUERY.pick(version))
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
    """What the query requires and forbids; until 1.39 only its last `required` counts."""
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


def _renderer(version: Version, prefix: str) -> Callable[[ProviderRow], dict[str, Any]]:
    """A function that shows a provider in the shape of a microversion.

    What does not depend on the provider is settled here: a list may be long.
    """
    base = f'{prefix}/resource_providers/'
    tails = [(name, f'/{name}') for name, since in _LINKS if version >= since]
    nested = version >= microversion.NESTED_PROVIDERS

    def render(row: ProviderRow) -> dict[str, Any]:
        uuid = row.uuid
        path = base + uuid
        shown: dict[str, Any] = {
            'uuid': uuid,
            'name': row.name,
            'generation': row.generation,
            'links': [
                {'rel': 'self', 'href': path},
                *[{'rel': name, 'href': path + tail} for name, tail in tails],
            ],
        }
        if nested:
            shown['parent_provider_uuid'] = row.parent_uuid
            shown['root_provider_uuid'] = row.root_uuid
        return shown

    return render


# Marks in a rendered provider for what differs from one provider to the next, and for the mount
# point, which differs from one request to the next.
_UUID, _NAME, _GENERATION, _PARENT, _ROOT, _PREFIX = (chr(0xE000 + n) for n in range(6))
_MARKS = re.compile(f'"([{_NAME}{_GENERATION}{_PARENT}{_ROOT}])"|({_UUID})')


@functools.cache
def _stencil(version: Version) -> tuple[str, Callable[[Sequence[str]], tuple[str, ...]]]:
    """A rendered provider with `%s` for each value, and a function that puts values in order."""
    sample = provider_search.Found(_UUID, _NAME, _GENERATION, _PARENT, _ROOT)  # type: ignore[arg-type]
    text = orjson.dumps(_renderer(version, _PREFIX)(sample)).decode()
    marks = [whole or inside for whole, inside in _MARKS.findall(text)]
    in_order = operator.itemgetter(*(ord(mark) - ord(_UUID) for mark in marks))
    return _MARKS.sub('%s', text.replace('%', '%%')), in_order


def _list_renderer(
    version: Version, prefix: str
) -> Callable[[provider_search.Found], orjson.Fragment]:
    """A function that shows providers as `_renderer` does, and faster: lists are long.

    One provider is rendered with marks in it; for each of the list the marks are filled in.
    """
    stencil, in_order = _stencil(version)
    # Clients may decide the prefix (X-Forwarded-Prefix), so no cache depends on it.
    stencil = stencil.replace(_PREFIX, orjson.dumps(prefix).decode()[1:-1].replace('%', '%%'))

    def render(provider: provider_search.Found) -> orjson.Fragment:
        uuid, *others = (orjson.dumps(value).decode() for value in provider)
        return orjson.Fragment(stencil % in_order((uuid[1:-1], *others)))

    return render
