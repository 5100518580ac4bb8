"""The inventories of a resource provider."""

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from placement import capacity, microversion
from placement.capacity import Inventory
from placement.handlers.operation import Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import MIN_VERSION
from placement.objects import inventory
from placement.schemas import GENERATION, RESOURCE_CLASS_NAME, Schema, closed

_GENERATION = 'resource_provider_generation'
_DEFAULTS = asdict(Inventory(total=0))

_AMOUNT = {'type': 'integer', 'minimum': 1, 'maximum': capacity.MAX_INT}
FIELDS: dict[str, Schema] = {
    'total': _AMOUNT,
    'reserved': {'type': 'integer', 'minimum': 0, 'maximum': capacity.MAX_INT},
    'min_unit': _AMOUNT,
    'max_unit': _AMOUNT,
    'step_size': _AMOUNT,
    # The range of the column, which is a single-precision float.
    'allocation_ratio': {'type': 'number', 'minimum': -3.40282e38, 'maximum': 3.40282e38},
}
# Placement ignores the generation in the body of POST, and in each of several inventories.
_RECORD = {_GENERATION: GENERATION, **FIELDS}
INVENTORY = closed(_RECORD, [_GENERATION, 'total'])
# The schema accepts any name of a resource class: Placement later reports an invalid name as an
# unknown class.
REPLACEMENT = closed(
    {
        _GENERATION: GENERATION,
        'inventories': {'type': 'object', 'additionalProperties': closed(_RECORD, ['total'])},
    }
)

# Each of these rules protects two operations.
_UPDATE_RULE = Rule(
    'placement:resource_providers:inventories:update',
    'Replace all inventories of a resource provider, or the inventory of one class.',
)
_DELETE_RULE = Rule(
    'placement:resource_providers:inventories:delete',
    'Delete all inventories of a resource provider, or the inventory of one class.',
)


@operation(
    'GET /resource_providers/{uuid}/inventories',
    since=MIN_VERSION,
    rule=Rule(
        'placement:resource_providers:inventories:list',
        'List the inventories of a resource provider.',
    ),
)
def get_inventories(call: Call) -> Reply:
    """List the inventories of a provider."""
    generation, inventories = inventory.list_by_provider(call.path['uuid'])
    document = {
        _GENERATION: generation,
        'inventories': {listed.resource_class: asdict(listed.inventory) for listed in inventories},
    }
    return reply.json_reply(call, document, last_modified=reply.newest(inventories))


@operation(
    'POST /resource_providers/{uuid}/inventories',
    since=MIN_VERSION,
    rule=Rule(
        'placement:resource_providers:inventories:create',
        'Create the inventory of one class of a resource provider.',
    ),
    body=closed(
        {**_RECORD, 'resource_class': {'type': 'string', 'pattern': RESOURCE_CLASS_NAME}},
        ['resource_class', 'total'],
    ),
)
def create_inventory(call: Call) -> Reply:
    """Create the inventory of one resource class."""
    uuid, name = call.path['uuid'], call.body['resource_class']
    generation = inventory.create(uuid, name, parse_inventory(call.body), _may_reserve_all(call))
    return reply.json_reply(
        call,
        {_GENERATION: generation, **_echo(call.body)},
        status=HTTPStatus.CREATED,
        location=f'/resource_providers/{uuid}/inventories/{name}',
    )


@operation(
    'PUT /resource_providers/{uuid}/inventories',
    since=MIN_VERSION,
    rule=_UPDATE_RULE,
    body=REPLACEMENT,
)
def set_inventories(call: Call) -> Reply:
    """Replace all inventories of a provider."""
    given, requested = parse_replacement(call.body)
    generation = inventory.replace(call.path['uuid'], given, requested, _may_reserve_all(call))
    document = {
        _GENERATION: generation,
        'inventories': {name: _echo(one) for name, one in call.body['inventories'].items()},
    }
    return reply.json_reply(call, document)


@operation(
    'DELETE /resource_providers/{uuid}/inventories',
    since=microversion.DELETE_INVENTORIES,
    rule=_DELETE_RULE,
)
def delete_inventories(call: Call) -> Reply:
    """Delete all inventories of a provider."""
    inventory.delete_all(call.path['uuid'])
    return reply.empty_reply(call)


@operation(
    'GET /resource_providers/{uuid}/inventories/{resource_class}',
    since=MIN_VERSION,
    rule=Rule(
        'placement:resource_providers:inventories:show',
        'Show the inventory of one class of a resource provider.',
    ),
)
def get_inventory(call: Call) -> Reply:
    """Show one inventory."""
    generation, listed = inventory.get(call.path['uuid'], call.path['resource_class'])
    document = {_GENERATION: generation, **asdict(listed.inventory)}
    return reply.json_reply(call, document, last_modified=reply.newest([listed]))


@operation(
    'PUT /resource_providers/{uuid}/inventories/{resource_class}',
    since=MIN_VERSION,
    rule=_UPDATE_RULE,
    body=INVENTORY,
)
def update_inventory(call: Call) -> Reply:
    """Replace one inventory."""
    generation = inventory.update(
        call.path['uuid'],
        int(call.body[_GENERATION]),
        call.path['resource_class'],
        parse_inventory(call.body),
        _may_reserve_all(call),
    )
    return reply.json_reply(call, {_GENERATION: generation, **_echo(call.body)})


@operation(
    'DELETE /resource_providers/{uuid}/inventories/{resource_class}',
    since=MIN_VERSION,
    rule=_DELETE_RULE,
)
def delete_inventory(call: Call) -> Reply:
    """Delete one inventory."""
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
