"""Concurrent clients of a cluster, and what they saw."""

from collections import Counter
import datetime
import itertools
import json
import os
from pathlib import Path
import time
import uuid

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.tests.functional.faults import storm
from placement.tests.functional.races import testcase

# The file to which each test appends one line of figures, if the variable is set.
FIGURES = 'PLACEMENT_TEST_CLUSTER_FIGURES'

CAPACITY = 30  # VCPU of one provider
CLAIMS = 40  # claims for one provider, so that some of them do not fit
_PROVIDERS = 1000
_FIRST_ID = 1_000_001
_VCPU = 0


def create_providers(engine: sa.Engine) -> list[str]:
    """Store providers that have an inventory of `CAPACITY` VCPU each; return their UUIDs.

    The rows of an earlier call are deleted.
    """
    ids = range(_FIRST_ID, _FIRST_ID + _PROVIDERS)
    now = {'created_at': datetime.datetime(2026, 1, 1, 12)}
    uuids = [f'{number:08x}-0000-4000-8000-00000000000a' for number in ids]
    providers = [
        {**now, 'id': number, 'root_provider_id': number, 'uuid': own, 'name': own, 'generation': 0}
        for number, own in zip(ids, uuids, strict=True)
    ]
    inventories = [
        {
            **now,
            'resource_provider_id': number,
            'resource_class_id': _VCPU,
            'total': CAPACITY,
            'reserved': 0,
            'min_unit': 1,
            'max_unit': CAPACITY,
            'step_size': 1,
            'allocation_ratio': 1.0,
        }
        for number in ids
    ]
    with engine.begin() as conn:
        for table in (
            models.allocations,
            models.consumers,
            models.inventories,
            models.resource_provider_traits,
            models.resource_provider_aggregates,
        ):
            conn.execute(sa.delete(table))
        conn.execute(
            sa.update(models.resource_providers).values(
                root_provider_id=None, parent_provider_id=None
            )
        )
        conn.execute(sa.delete(models.resource_providers))
        conn.execute(sa.insert(models.resource_providers), providers)
        conn.execute(sa.insert(models.inventories), inventories)
    return uuids


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
        self._begin = time.monotonic()
        self.reads: Counter[int] = Counter()
        self.stale: list[str] = []  # granted claims that a later read did not return
        self.full: set[str] = set()  # providers for which a claim was rejected
        self.unexpected: list[object] = []  # error documents of other failed claims
        self.slowest = 0.0

    def claim(self) -> int:
        """Send one more claim, and return its status."""
        consumer = str(uuid.uuid4())
        status = self.consumers[consumer] = self._claim_and_read(0, consumer)
        self.statuses[status] += 1
        return status

    def _claim_and_read(self, number: int, consumer: str) -> int:
        provider = self._providers[next(self._numbers) // CLAIMS]
        path = f'/allocations/{consumer}'
        body = testcase.claim({provider: 1}, project=f'project-{number}')
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
        begin = time.monotonic()
        status, content = storm.exchange(self._port, method, path, body)
        self.slowest = max(self.slowest, time.monotonic() - begin)
        try:
            return status, json.loads(content) if content else {}
        except ValueError:  # an error page of the load balancer
            return status, {}

    @property
    def failed(self) -> int:
        """The number of requests that did not succeed, except for claims that do not fit."""
        claims = sum(count for status, count in self.statuses.items() if status not in (204, 409))
        return claims + sum(count for status, count in self.reads.items() if status != 200)

    def report(self, name: str, **figures: object) -> None:
        """Append the figures of a test to the file of the run, if there is one."""
        if FIGURES not in os.environ:
            return
        seconds = time.monotonic() - self._begin
        line = {
            'test': name,
            'requests': self.statuses.total() + self.reads.total(),
            'failed': self.failed,
            'claims': dict(sorted(self.statuses.items())),
            'reads': dict(sorted(self.reads.items())),
            'slowest': round(self.slowest, 2),
            'seconds': round(seconds, 1),
            **{key: round(v, 1) if isinstance(v, float) else v for key, v in figures.items()},
        }
        with Path(os.environ[FIGURES]).open('a') as file:
            file.write(f'{json.dumps(line)}\n')
