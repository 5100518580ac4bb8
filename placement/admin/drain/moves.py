"""Describes the moves of a plan, with the bodies of PUT /allocations/{consumer} that make them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from placement import microversion
from placement.admin.drain.plan import Move
from placement.admin.drain.requests import Cloud, Owner
from placement.admin.failure import CannotProceedError
from placement.candidates.model import InventoryKey

# From microversion 1.38 on, a body has a consumer type. Instances that Nova created have none, and
# a body of an older microversion keeps it so.
_WITH_TYPE, _WITHOUT_TYPE = str(microversion.ANY_TRAITS), str(microversion.REPARENTING)


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a consumer is, and where it goes.

    :ivar origins: the UUIDs and the names of the old roots
    :ivar to: the UUID of the new root
    """

    consumer: str
    type: str | None
    project: str | None
    origins: Sequence[tuple[str, str]]
    to: str
    to_name: str

    def document(self) -> dict[str, Any]:
        """Return the move for JSON."""
        return {
            'consumer': self.consumer,
            'project': self.project,
            'from': [uuid for uuid, _ in self.origins],
            'from_names': [name for _, name in self.origins],
            'to': self.to,
            'to_name': self.to_name,
        }


def moved(cloud: Cloud, move: Move, owner: Owner) -> Moved:
    """Return where a consumer goes."""
    consumer = move.request.consumer
    origins = sorted(cloud.anchors[root_id].root.uuid for root_id in move.request.origins)
    to = cloud.anchors[move.place.root_id].root.uuid
    return Moved(
        consumer.uuid,
        consumer.type,
        owner.project,
        [(uuid, cloud.names.get(uuid, '')) for uuid in origins],
        to,
        cloud.names.get(to, ''),
    )


def lines(cloud: Cloud, moves: Sequence[Move], owners: Mapping[str, Owner]) -> Iterator[bytes]:
    """Yield a line of JSON for each move, in the order in which the API grants them.

    :param owners: UUID of each consumer -> its owner
    :raises CannotProceedError: the project or the user of a consumer does not exist
    """
    for move in moves:
        consumer = move.request.consumer
        owner = owners[consumer.uuid]
        if owner.project is None or owner.user is None:
            raise CannotProceedError(
                f'The project or the user of the consumer {consumer.uuid} does not exist. Run '
                '`placement-manage audit --only owner-missing`.'
            )
        line = moved(cloud, move, owner).document() | {
            'microversion': _WITHOUT_TYPE if consumer.type is None else _WITH_TYPE,
            'body': _body(cloud, move, owner),
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
