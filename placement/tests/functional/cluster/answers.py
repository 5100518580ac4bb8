"""Pairs of requests: a write at one node, and a request at another node that depends on it.

`KINDS` contains the pairs. The response at the second node must reflect the write that the first
node has acknowledged.
"""

from collections.abc import Mapping, Sequence
from concurrent import futures
import contextlib
import http.client
import itertools
import json
import string
import threading
import time
from typing import Any, NamedTuple
import uuid

from placement.tests.functional.base import claim
from placement.tests.functional.cluster.gate import Gate
from placement.tests.functional.faults import storm
from placement.tests.waiting import LONGEST

# The request at the second node begins with an INSERT or an UPDATE, and a node that has not applied
# the write of the first node rejects it.
WRITE_FIRST = (
    'POST provider -> PUT aggregates',
    'PUT inventories -> claim',
    'DELETE allocations -> claim of the capacity',
    'PUT aggregates -> PUT aggregates',
    'POST reshaper -> claim',
)


class Step(NamedTuple):
    """A request, whose path and body contain names such as `$provider`.

    :ivar expected: the status, or a part of the document; None for any success
    :ivar node: the number of the node that receives it
    """

    line: str
    body: Any = None
    expected: int | str | None = None
    version: str = 'latest'
    node: int = 1


class Pair:
    """Two API processes, each with a node of its own.

    :param ports: the ports of the processes
    :param gate: stops the applier of the second node during the write that decides
    :param pause: the seconds after this write until the applier continues; None lets the applier
        continue after the response of the second node
    """

    def __init__(self, *ports: int, gate: Gate | None = None, pause: float | None = 0.02) -> None:
        self._clients = [
            http.client.HTTPConnection('127.0.0.1', port, timeout=LONGEST) for port in ports
        ]
        self._gate, self._pause = gate, pause
        self._names: dict[str, str] = {}
        self.answer_seen: tuple[int, str] = (storm.NO_RESPONSE, '')

    def close(self) -> None:
        """Close the connections to the API processes."""
        for client in self._clients:
            client.close()

    def is_fresh(self, kind: str) -> bool:
        """Send a pair, and return whether the response reflects the write."""
        names = ('provider', 'child', 'consumer', 'aggregate', 'new')
        self._names = {name: str(uuid.uuid4()) for name in names}
        self._names['CUSTOM'] = f'CUSTOM_{uuid.uuid4().hex.upper()}'
        writes, steps = KINDS[kind]
        try:
            for number, write in enumerate(writes, 1):
                if self._gate is not None and number == len(writes):
                    self._gate.hold()
                if not self._succeeds(write, 0):
                    raise AssertionError(f'{write}: {self.answer_seen}')
            if self._gate is not None and self._pause is not None:
                threading.Thread(target=self._release_later, daemon=True).start()
            return all(self._succeeds(step, step.node) for step in steps)
        finally:
            if self._gate is not None:
                self._gate.release()

    def _release_later(self) -> None:
        assert self._gate is not None and self._pause is not None
        time.sleep(self._pause)
        self._gate.release()

    def _succeeds(self, step: Step, node: int) -> bool:
        """Send a request to a node; return whether the response is the expected one."""
        headers = {
            'X-Auth-Token': 'admin',
            'X-Roles': 'admin,service',
            'OpenStack-API-Version': f'placement {step.version}',
            'Content-Type': 'application/json',
            'Accept': 'application/json',
        }
        content = None if step.body is None else self._with_names(json.dumps(step.body))
        self._clients[node].request(*self._with_names(step.line).split(' '), content, headers)
        response = self._clients[node].getresponse()
        text = response.read()
        self.answer_seen = response.status, json.dumps(json.loads(text)) if text else ''
        if isinstance(step.expected, str):
            return self._with_names(step.expected) in self.answer_seen[1]
        if step.expected is None:
            return response.status < 300
        return response.status == step.expected

    def _with_names(self, text: str) -> str:
        return string.Template(text).substitute(self._names)


def send_pairs(
    ports: Sequence[int], rounds: int = 1, clients: int = 1, **options: Any
) -> list[tuple[str, Any]]:
    """Send all kinds of pairs in each round of each client.

    :param ports: the API processes of the first and of the second node
    :param options: arguments of `Pair`
    :returns: the kind and the response of each pair whose response did not reflect the write
    """
    stale = []

    def send(_client: int) -> None:
        with contextlib.closing(Pair(*ports, **options)) as pair:
            for _, kind in itertools.product(range(rounds), KINDS):
                if not pair.is_fresh(kind):
                    stale.append((kind, pair.answer_seen))

    with futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, range(clients)))
    return stale


def _claim(amount: int, provider: str = '$provider', generation: int | None = None) -> Any:
    """Return the body of a claim of VCPU. Each pair has a project of its own."""
    return claim({provider: {'VCPU': amount}}, generation, project='$provider')


def _inventories(total: int, generation: int = 0, name: str = 'VCPU') -> dict[str, Any]:
    """Return the body that replaces the inventories of a provider."""
    return {'resource_provider_generation': generation, 'inventories': {name: {'total': total}}}


def _traits(generation: int, *names: str) -> dict[str, Any]:
    """Return the body that replaces the traits of a provider."""
    return {'resource_provider_generation': generation, 'traits': names}


def _aggregates(generation: int, name: str = '$new') -> dict[str, Any]:
    """Return the body that replaces the aggregates of a provider."""
    return {'resource_provider_generation': generation, 'aggregates': [name]}


# The moves of the inventory and the allocation of a provider to its child.
_RESHAPE = {
    'inventories': {
        '$provider': {'resource_provider_generation': 2, 'inventories': {}},
        '$child': _inventories(8),
    },
    'allocations': {'$consumer': _claim(1, '$child', 1)},
}
_OWN, _CONSUMER, _NEW = (
    '/resource_providers/$provider',
    '/allocations/$consumer',
    '/allocations/$new',
)
_CANDIDATES = 'GET /allocation_candidates?resources=VCPU:8&in_tree=$provider'
_PROVIDER, _CHILD = (
    Step('POST /resource_providers', {'uuid': name, 'name': name})
    for name in ('$provider', '$child')
)
_INVENTORY = Step(f'PUT {_OWN}/inventories', _inventories(8))
_HOST = (_CHILD, _PROVIDER, _INVENTORY)
_TRAIT, _CLASS = '/traits/$CUSTOM', '/resource_classes/$CUSTOM'

# Each write, with the requests that it needs -> the requests at the second node.
_PAIRS: tuple[tuple[str, Sequence[Step], Mapping[str, Step | Sequence[Step]]], ...] = (
    (
        'POST provider',
        (_PROVIDER,),
        {
            'PUT inventories': _INVENTORY,
            'POST inventory': Step(
                f'POST {_OWN}/inventories', {'resource_class': 'VCPU', 'total': 8}
            ),
            'PUT aggregates': Step(f'PUT {_OWN}/aggregates', _aggregates(0)),
            'PUT aggregates, 1.18': Step(f'PUT {_OWN}/aggregates', ['$new'], version='1.18'),
            'PUT traits': Step(f'PUT {_OWN}/traits', _traits(0)),
            'PUT provider': Step(f'PUT {_OWN}', {'name': '$new'}),
            'POST child': Step(
                'POST /resource_providers', {'name': '$new', 'parent_provider_uuid': '$provider'}
            ),
            'POST provider of the same name': Step(
                'POST /resource_providers', {'name': '$provider'}, 409
            ),
            'DELETE provider': Step(f'DELETE {_OWN}'),
            'GET provider': Step(f'GET {_OWN}'),
            'GET providers': Step('GET /resource_providers?name=$provider', None, '$provider'),
        },
    ),
    (
        'DELETE provider',
        (*_HOST, Step(f'DELETE {_OWN}')),
        {'claim': Step(f'PUT {_NEW}', _claim(1), 400)},
    ),
    (
        'PUT inventories',
        (_PROVIDER, _INVENTORY),
        {
            'claim': Step(f'PUT {_NEW}', _claim(1)),
            'PUT inventories': Step(f'PUT {_OWN}/inventories', _inventories(9, 1)),
            'PUT inventory': Step(
                f'PUT {_OWN}/inventories/VCPU', {'total': 9, 'resource_provider_generation': 1}
            ),
            'DELETE inventories': (
                Step(f'DELETE {_OWN}/inventories'),
                Step(f'GET {_OWN}/inventories', None, '"inventories": {}', node=0),
            ),
            'DELETE inventory': Step(f'DELETE {_OWN}/inventories/VCPU'),
            'GET inventories': Step(f'GET {_OWN}/inventories', None, 'VCPU'),
            'GET inventory': Step(f'GET {_OWN}/inventories/VCPU'),
            'GET candidates': Step(_CANDIDATES, None, '$provider'),
        },
    ),
    (
        'shrink inventory',
        (*_HOST, Step(f'PUT {_OWN}/inventories', _inventories(1, 1))),
        {'claim': Step(f'PUT {_NEW}', _claim(8), 409)},
    ),
    (
        'claim',
        (*_HOST, Step(f'PUT {_CONSUMER}', _claim(3))),
        {
            'claim of the same capacity': Step(f'PUT {_NEW}', _claim(6), 409),
            'claim of the consumer as a new one': Step(f'PUT {_CONSUMER}', _claim(1), 409),
            'change of the claim': Step(f'PUT {_CONSUMER}', _claim(2, generation=1)),
            'POST allocations': Step(
                'POST /allocations', {'$consumer': claim({}, generation=1), '$new': _claim(1)}
            ),
            'POST reshaper': Step('POST /reshaper', _RESHAPE),
            'DELETE allocations': Step(f'DELETE {_CONSUMER}'),
            'DELETE inventory': Step(f'DELETE {_OWN}/inventories/VCPU', None, 409),
            'DELETE provider': Step(f'DELETE {_OWN}', None, 409),
            'GET allocations': Step(f'GET {_CONSUMER}', None, '"VCPU": 3'),
            'GET allocations of the provider': Step(f'GET {_OWN}/allocations', None, '$consumer'),
            'GET usages of the provider': Step(f'GET {_OWN}/usages', None, '"VCPU": 3'),
            'GET usages of the project': Step('GET /usages?project_id=$provider', None, 'VCPU'),
            'GET candidates': Step(_CANDIDATES, None, '"allocation_requests": []'),
        },
    ),
    (
        'DELETE allocations',
        (*_HOST, Step(f'PUT {_CONSUMER}', _claim(8)), Step(f'DELETE {_CONSUMER}')),
        {
            'claim of the capacity': Step(f'PUT {_NEW}', _claim(8)),
            'claim of the consumer': Step(f'PUT {_CONSUMER}', _claim(1)),
        },
    ),
    (
        'PUT trait',
        (_PROVIDER, Step(f'PUT {_TRAIT}')),
        {
            'PUT traits': Step(f'PUT {_OWN}/traits', _traits(0, '$CUSTOM')),
            'PUT trait': Step(f'PUT {_TRAIT}', None, 204),
            'DELETE trait': Step(f'DELETE {_TRAIT}'),
            'GET trait': Step(f'GET {_TRAIT}'),
            'GET traits': Step('GET /traits?name=in:$CUSTOM', None, '$CUSTOM'),
        },
    ),
    (
        'DELETE trait',
        (_PROVIDER, Step(f'PUT {_TRAIT}'), Step(f'DELETE {_TRAIT}')),
        {'PUT traits': Step(f'PUT {_OWN}/traits', _traits(0, '$CUSTOM'), 400)},
    ),
    (
        'PUT traits',
        (*_HOST, Step(f'PUT {_OWN}/traits', _traits(1, 'HW_CPU_X86_AVX2'))),
        {
            'GET traits of the provider': Step(f'GET {_OWN}/traits', None, 'HW_CPU_X86_AVX2'),
            'DELETE traits': (
                Step(f'DELETE {_OWN}/traits'),
                Step(f'GET {_OWN}/traits', None, '"traits": []', node=0),
            ),
            'GET candidates': Step(f'{_CANDIDATES}&required=HW_CPU_X86_AVX2', None, '$provider'),
        },
    ),
    (
        'PUT aggregates',
        (*_HOST, Step(f'PUT {_OWN}/aggregates', _aggregates(1, '$aggregate'))),
        {
            'PUT aggregates': Step(f'PUT {_OWN}/aggregates', _aggregates(2)),
            'GET aggregates': Step(f'GET {_OWN}/aggregates', None, '$aggregate'),
            'GET candidates': Step(f'{_CANDIDATES}&member_of=$aggregate', None, '$provider'),
        },
    ),
    (
        'PUT class',
        (_PROVIDER, Step(f'PUT {_CLASS}')),
        {
            'PUT inventories': Step(f'PUT {_OWN}/inventories', _inventories(8, 0, '$CUSTOM')),
            'PUT and DELETE class': (Step(f'PUT {_CLASS}', None, 204), Step(f'DELETE {_CLASS}')),
            'PUT class, 1.6': Step(f'PUT {_CLASS}', {'name': '${CUSTOM}_NEW'}, version='1.6'),
            'GET class': Step(f'GET {_CLASS}'),
            'GET classes': Step('GET /resource_classes', None, '$CUSTOM'),
        },
    ),
    (
        'DELETE class',
        (_PROVIDER, Step(f'PUT {_CLASS}'), Step(f'DELETE {_CLASS}')),
        {'PUT inventories': Step(f'PUT {_OWN}/inventories', _inventories(8, 0, '$CUSTOM'), 400)},
    ),
    (
        'POST reshaper',
        (*_HOST, Step(f'PUT {_CONSUMER}', _claim(1)), Step('POST /reshaper', _RESHAPE)),
        {'claim': Step(f'PUT {_NEW}', _claim(7, '$child'))},
    ),
)
KINDS = {
    f'{write} -> {name}': (first, (second,) if isinstance(second, Step) else second)
    for write, first, requests in _PAIRS
    for name, second in requests.items()
}
