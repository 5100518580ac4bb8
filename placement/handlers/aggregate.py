"""The aggregates of a resource provider."""

from collections.abc import Sequence
from typing import Any

from placement import microversion
from placement.handlers.operation import Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import Variants
from placement.objects import aggregate
from placement.schemas import AGGREGATE, GENERATION, closed

_AGGREGATES = {'type': 'array', 'items': AGGREGATE, 'uniqueItems': True}


@operation(
    'GET /resource_providers/{uuid}/aggregates',
    since=microversion.AGGREGATES,
    rule=Rule(
        'placement:resource_providers:aggregates:list',
        'List the aggregates of a resource provider.',
    ),
    media_type_first=True,
)
def get_aggregates(call: Call) -> Reply:
    """List the aggregates of a provider."""
    generation, uuids = aggregate.list_by_provider(call.path['uuid'])
    return reply.json_reply(call, _document(call, uuids, generation))


@operation(
    'PUT /resource_providers/{uuid}/aggregates',
    since=microversion.AGGREGATES,
    rule=Rule(
        'placement:resource_providers:aggregates:update',
        'Replace the aggregates of a resource provider.',
    ),
    body=Variants(
        {
            microversion.AGGREGATES: _AGGREGATES,
            microversion.AGGREGATE_GENERATION: closed(
                {'aggregates': _AGGREGATES, 'resource_provider_generation': GENERATION}
            ),
        }
    ),
    media_type_first=True,
)
def set_aggregates(call: Call) -> Reply:
    """Replace the aggregates of a provider."""
    if call.version < microversion.AGGREGATE_GENERATION:
        uuids, given = call.body, None
    else:
        uuids, given = call.body['aggregates'], int(call.body['resource_provider_generation'])
    generation = aggregate.replace(call.path['uuid'], uuids, given)
    return reply.json_reply(call, _document(call, uuids, generation))


def _document(call: Call, uuids: Sequence[str], generation: int) -> dict[str, Any]:
    document: dict[str, Any] = {'aggregates': uuids}
    if call.version >= microversion.AGGREGATE_GENERATION:
        document['resource_provider_generation'] = generation
    return document
