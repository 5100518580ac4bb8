"""Builds the bodies of PUT /allocations/{consumer} that make the moves of a plan."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from placement import microversion
from placement.admin.drain.plan import Move
from placement.admin.drain.requests import Cloud, Owner
from placement.candidates.model import InventoryKey

# From microversion 1.38 on, a body has a consumer type. Instances that Nova created have none, and
# a body of an older microversion keeps it so.
_WITH_TYPE, _WITHOUT_TYPE = str(microversion.ANY_TRAITS), str(microversion.REPARENTING)


def lines(cloud: Cloud, moves: Sequence[Move], owners: Mapping[str, Owner]) -> Iterator[bytes]:
    """Yield a line of JSON for each move, in the order in which the API grants them.

    :param owners: UUID of each consumer -> its owner
    """
    for move in moves:
        consumer = move.request.consumer
        roots = [cloud.anchors[root_id].root.uuid for root_id in move.request.origins]
        line = {
            'consumer': consumer.uuid,
            'from': sorted(roots),
            'to': cloud.anchors[move.place.root_id].root.uuid,
            'microversion': _WITHOUT_TYPE if consumer.type is None else _WITH_TYPE,
            'body': _body(cloud, move, owners[consumer.uuid]),
        }
        yield orjson.dumps(line) + b'\n'


def _body(cloud: Cloud, move: Move, owner: Owner) -> dict[str, Any]:
    request = move.request
    amounts: Counter[InventoryKey] = Counter(move.place.amounts)
    for provider_id, class_id, amount in request.kind.kept:
        amounts[provider_id, class_id] += amount
    body = {
        'allocations': _allocations(cloud, amounts),
        'project_id': owner.project,
        'user_id': owner.user,
        'consumer_generation': owner.generation,
    }
    if request.consumer.type is not None:
        body['consumer_type'] = request.consumer.type
    return body


def _allocations(cloud: Cloud, amounts: Mapping[InventoryKey, int]) -> dict[str, Any]:
    result: dict[str, Any] = defaultdict(lambda: {'resources': {}})
    for (provider_id, class_id), amount in amounts.items():
        uuid = cloud.providers[provider_id].uuid
        result[uuid]['resources'][cloud.classes[class_id]] = amount
    return dict(result)
