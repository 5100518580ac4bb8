"""Handlers of the aggregates of a resource provider."""

from collections.abc import Sequence
from typing import Any

from placement import microversion
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import aggregate


def get_aggregates(call: Call) -> Reply:
    """GET /resource_providers/{uuid}/aggregates: list the aggregates of a provider."""
    generation, uuids = aggregate.list_by_provider(call.path['uuid'])
    return reply.json_reply(call, _document(call, uuids, generation))


def set_aggregates(call: Call) -> Reply:
    """PUT /resource_providers/{uuid}/aggregates: replace the aggregates of a provider."""
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
