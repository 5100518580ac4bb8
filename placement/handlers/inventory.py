"""Handlers of the inventories of a resource provider."""

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from placement import microversion
from placement.capacity import Inventory
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import inventory

_GENERATION = 'resource_provider_generation'
_DEFAULTS = asdict(Inventory(total=0))


def get_inventories(call: Call) -> Reply:
    """GET /resource_providers/{uuid}/inventories: list the inventories of a provider."""
    generation, inventories = inventory.list_by_provider(call.path['uuid'])
    document = {
        _GENERATION: generation,
        'inventories': {listed.resource_class: asdict(listed.inventory) for listed in inventories},
    }
    return reply.json_reply(call, document, last_modified=reply.newest(inventories))


def create_inventory(call: Call) -> Reply:
    """POST /resource_providers/{uuid}/inventories: create the inventory of one resource class."""
    uuid, name = call.path['uuid'], call.body['resource_class']
    generation = inventory.create(uuid, name, parse_inventory(call.body), _may_reserve_all(call))
    return reply.json_reply(
        call,
        {_GENERATION: generation, **_echo(call.body)},
        status=HTTPStatus.CREATED,
        location=f'/resource_providers/{uuid}/inventories/{name}',
    )


def set_inventories(call: Call) -> Reply:
    """PUT /resource_providers/{uuid}/inventories: replace all inventories of a provider."""
    given, requested = parse_replacement(call.body)
    generation = inventory.replace(call.path['uuid'], given, requested, _may_reserve_all(call))
    document = {
        _GENERATION: generation,
        'inventories': {name: _echo(one) for name, one in call.body['inventories'].items()},
    }
    return reply.json_reply(call, document)


def delete_inventories(call: Call) -> Reply:
    """DELETE /resource_providers/{uuid}/inventories: delete all inventories of a provider."""
    inventory.delete_all(call.path['uuid'])
    return reply.empty_reply(call)


def get_inventory(call: Call) -> Reply:
    """GET /resource_providers/{uuid}/inventories/{resource_class}: show one inventory."""
    generation, listed = inventory.get(call.path['uuid'], call.path['resource_class'])
    document = {_GENERATION: generation, **asdict(listed.inventory)}
    return reply.json_reply(call, document, last_modified=reply.newest([listed]))


def update_inventory(call: Call) -> Reply:
    """PUT /resource_providers/{uuid}/inventories/{resource_class}: replace one inventory."""
    generation = inventory.update(
        call.path['uuid'],
        int(call.body[_GENERATION]),
        call.path['resource_class'],
        parse_inventory(call.body),
        _may_reserve_all(call),
    )
    return reply.json_reply(call, {_GENERATION: generation, **_echo(call.body)})


def delete_inventory(call: Call) -> Reply:
    """DELETE /resource_providers/{uuid}/inventories/{resource_class}: delete one inventory."""
    inventory.delete(call.path['uuid'], call.path['resource_class'])
    return reply.empty_reply(call)


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


def _may_reserve_all(call: Call) -> bool:
    return call.version >= microversion.RESERVED_MAY_EQUAL_TOTAL
