"""Handlers of the inventories of a resource provider."""

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import webob

from placement import microversion, wsgi_wrapper
from placement.capacity import Inventory
from placement.handlers import body
from placement.http import reply, request
from placement.objects import inventory
from placement.policies import inventory as policies
from placement.schemas import inventory as schemas

_GENERATION = 'resource_provider_generation'
_DEFAULTS = asdict(Inventory(total=0))


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def get_inventories(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/inventories: list the inventories of a provider."""
    request.context(req).can(policies.LIST)
    generation, inventories = inventory.list_by_provider(request.path_item(req, 'uuid'))
    document = {
        _GENERATION: generation,
        'inventories': {listed.resource_class: asdict(listed.inventory) for listed in inventories},
    }
    return reply.json_reply(req, document, last_modified=reply.newest(inventories))


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
def create_inventory(req: webob.Request) -> webob.Response:
    """POST /resource_providers/{uuid}/inventories: create the inventory of one resource class."""
    request.context(req).can(policies.CREATE)
    uuid = request.path_item(req, 'uuid')
    data = body.about_provider(req, uuid, schemas.POST_INVENTORY)
    name = data['resource_class']
    generation = inventory.create(uuid, name, parse_inventory(data), _may_reserve_all(req))
    return reply.json_reply(
        req,
        {_GENERATION: generation, **_echo(data)},
        status=HTTPStatus.CREATED,
        location=f'/resource_providers/{uuid}/inventories/{name}',
    )


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
def set_inventories(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}/inventories: replace all inventories of a provider."""
    request.context(req).can(policies.UPDATE)
    uuid = request.path_item(req, 'uuid')
    data = body.about_provider(req, uuid, schemas.PUT_INVENTORIES)
    given, requested = parse_replacement(data)
    generation = inventory.replace(uuid, given, requested, _may_reserve_all(req))
    document = {
        _GENERATION: generation,
        'inventories': {name: _echo(one) for name, one in data['inventories'].items()},
    }
    return reply.json_reply(req, document)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.DELETE_INVENTORIES, path_is_older=True)
def delete_inventories(req: webob.Request) -> webob.Response:
    """DELETE /resource_providers/{uuid}/inventories: delete all inventories of a provider."""
    request.context(req).can(policies.DELETE)
    inventory.delete_all(request.path_item(req, 'uuid'))
    return reply.empty_reply(req)


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def get_inventory(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/inventories/{resource_class}: show one inventory."""
    request.context(req).can(policies.SHOW)
    generation, listed = inventory.get(
        request.path_item(req, 'uuid'), request.path_item(req, 'resource_class')
    )
    document = {_GENERATION: generation, **asdict(listed.inventory)}
    return reply.json_reply(req, document, last_modified=reply.newest([listed]))


@wsgi_wrapper.PlacementWsgify
@request.require_content(request.JSON)
def update_inventory(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}/inventories/{resource_class}: replace one inventory."""
    request.context(req).can(policies.UPDATE)
    uuid = request.path_item(req, 'uuid')
    data = body.about_provider(req, uuid, schemas.PUT_INVENTORY)
    generation = inventory.update(
        uuid,
        int(data[_GENERATION]),
        request.path_item(req, 'resource_class'),
        parse_inventory(data),
        _may_reserve_all(req),
    )
    return reply.json_reply(req, {_GENERATION: generation, **_echo(data)})


@wsgi_wrapper.PlacementWsgify
def delete_inventory(req: webob.Request) -> webob.Response:
    """DELETE /resource_providers/{uuid}/inventories/{resource_class}: delete one inventory."""
    request.context(req).can(policies.DELETE)
    inventory.delete(request.path_item(req, 'uuid'), request.path_item(req, 'resource_class'))
    return reply.empty_reply(req)


def parse_inventory(data: Mapping[str, Any]) -> Inventory:
    """Return the inventory from a validated body, with default values for missing fields."""
    values = {key: data[key] for key in _DEFAULTS if key in data}
    ratio = float(values.pop('allocation_ratio', _DEFAULTS['allocation_ratio']))
    # JSON does not distinguish integers from floats, and JSON Schema accepts 2.0 as an integer.
    amounts = {key: int(value) for key, value in values.items()}
    return Inventory(**amounts, allocation_ratio=ratio)


def parse_replacement(data: Mapping[str, Any]) -> tuple[int, dict[str, Inventory]]:
    """Return the provider generation and the inventories by class name from a validated body."""
    inventories = {name: parse_inventory(one) for name, one in data['inventories'].items()}
    return int(data[_GENERATION]), inventories


def _echo(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inventory for the response, with default values for missing fields.

    Numbers are in the same form as in the request: for example, 2.0 is not converted to 2.
    """
    return {key: data.get(key, default) for key, default in _DEFAULTS.items()}


def _may_reserve_all(req: webob.Request) -> bool:
    return request.version(req) >= microversion.RESERVED_MAY_EQUAL_TOTAL
