"""Concurrent clients of a cluster, and what they saw."""

from collections import Counter
import itertools
import json
import uuid

import sqlalchemy as sa

from placement.tests import worlds
from placement.tests.functional.base import claim
from placement.tests.functional.faults import storm
from placement.tests.worlds import rows

CAPACITY = 30  # VCPU of one provider
CLAIMS = 40  # claims for one provider, so that some of them do not fit
_PROVIDERS = 1000


def create_providers(engine: sa.Engine) -> list[str]:
    """Store providers that have an inventory of `CAPACITY` VCPU each; return their UUIDs.

    The rows of an earlier call are deleted.
    """
    vcpu = {'VCPU': worlds.inventory(CAPACITY)}
    world = worlds.World(
        tuple(worlds.Host(f'host{number}', inventories=vcpu) for number in range(_PROVIDERS))
    )
    rows.fill(engine, world)
    return [host.uuid for host in world.hosts]


class Traffic(storm.Storm):
    """Claims through a port, each followed by a read of the claim.

    The claims go to one provider after the other, and each provider receives more claims than fit.
    Therefore concurrent claims compete for the last free capacity at every moment.
    """

    def __init__(self, port: int, providers: list[str], clients: int = 8):
        super().__init__(self._claim_and_read, clients)
        self._port = port
        self._providers = providers
        self._numbers = itertools.count()
        self.reads: Counter[int] = Counter()
        self.stale: list[str] = []  # granted claims that a later read did not return
        self.full: set[str] = set()  # providers for which a claim was rejected
        self.unexpected: list[object] = []  # error documents of other failed claims

    def claim(self) -> int:
        """Send one more claim, and return its status."""
        consumer = str(uuid.uuid4())
        status = self.consumers[consumer] = self._claim_and_read(0, consumer)
        self.statuses[status] += 1
        return status

    def _claim_and_read(self, number: int, consumer: str) -> int:
        provider = self._providers[next(self._numbers) // CLAIMS]
        path = f'/allocations/{consumer}'
        body = claim({provider: {'VCPU': 1}}, project=f'project-{number}')
        status, document = self._exchange('PUT', path, body)
        if status == 204:
            self._read(consumer, path)
        elif status == 409:
            self.full.add(provider)
        if status not in (204, 409):
            self.unexpected.append((status, document))
        return status

    def _read(self, consumer: str, path: str) -> None:
        status, document = self._exchange('GET', path)
        self.reads[status] += 1
        if status == 200 and not document['allocations']:
            self.stale.append(consumer)

    def _exchange(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        status, content = storm.exchange(self._port, method, path, body)
        try:
            return status, json.loads(content) if content else {}
        except ValueError:  # an error page of the load balancer
            return status, {}

    @property
    def failed(self) -> int:
        """The number of requests that did not succeed, except for claims that do not fit."""
        claims = sum(count for status, count in self.statuses.items() if status not in (204, 409))
        return claims + sum(count for status, count in self.reads.items() if status != 200)
