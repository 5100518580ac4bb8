"""Pairs of requests: a write at one node, and a request at another node that depends on it.

`KINDS` contains the pairs. Each is a function that returns whether the response at the second node
reflects the write that the first node has acknowledged.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
import contextlib
import functools
import http.client
import itertools
import json
import threading
import time
from typing import Any
import uuid

from placement.tests.functional.base import claim
from placement.tests.functional.cluster.gate import Gate
from placement.tests.functional.faults import storm
from placement.tests.waiting import LONGEST

KINDS: dict[str, Callable[['Pair'], bool]] = {}
# The request at the second node begins with an INSERT or an UPDATE, and a node that has not applied
# the write of the first node rejects it.
WRITE_FIRST = (
    'POST provider -> PUT inventories',
    'POST provider -> PUT aggregates',
    'PUT inventories -> claim',
    'DELETE allocations -> claim of the capacity',
    'DELETE allocations -> claim of the consumer',
    'PUT aggregates -> PUT aggregates',
    'POST reshaper -> claim',
)


class Client:
    """A client with a persistent connection to an API process."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection('127.0.0.1', port, timeout=LONGEST)
        self.close = self._connection.close

    def send(
        self, method: str, path: str, body: Any = None, version: str = 'latest'
    ) -> tuple[int, Any]:
        """Send a request; return the status and the document of the response."""
        headers = {
            'X-Auth-Token': 'admin',
            'X-Roles': 'admin,service',
            'OpenStack-API-Version': f'placement {version}',
            'Content-Type': 'application/json',
            'Accept': 'application/json',
        }
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, headers)
        response = self._connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else {}


class Pair:
    """Two API processes, each with a node of its own.

    :param gate: stops the applier of the second node during the write that decides
    :param pause: the seconds after this write until the applier continues; None lets the applier
        continue after the response of the second node
    """

    def __init__(
        self, first: int, second: int, gate: Gate | None = None, pause: float | None = 0.02
    ) -> None:
        self._first, self._second = Client(first), Client(second)
        self._gate, self._pause = gate, pause
        self.answer_seen: tuple[int, Any] = (storm.NO_RESPONSE, None)

    def close(self) -> None:
        """Close the connections to the API processes."""
        self._first.close()
        self._second.close()

    def is_fresh(self, kind: str) -> bool:
        """Send a pair, and return whether the response reflects the write."""
        try:
            return KINDS[kind](self)
        finally:
            if self._gate is not None:
                self._gate.release()

    def prepare(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the first node, require its success, and return the document."""
        status, document = self._first.send(method, path, body)
        if not 200 <= status < 300:
            raise AssertionError(f'{method} {path}: {status} {document}')
        return document

    def decide(self, method: str, path: str, body: Any = None) -> Any:
        """Like `prepare`, for the write on which the response of the second node depends."""
        if self._gate is None:
            return self.prepare(method, path, body)
        self._gate.hold()
        document = self.prepare(method, path, body)
        if self._pause is not None:
            threading.Thread(target=self._release_later, args=(self._gate,), daemon=True).start()
        return document

    def _release_later(self, gate: Gate) -> None:
        assert self._pause is not None
        time.sleep(self._pause)
        gate.release()

    def answer(self, method: str, path: str, body: Any = None, version: str = 'latest') -> Any:
        """Send a request to the second node; return the document of the response."""
        self.answer_seen = self._second.send(method, path, body, version)
        return self.answer_seen[1]

    def answers(
        self, status: int, method: str, path: str, body: Any = None, version: str = 'latest'
    ) -> bool:
        """Send a request to the second node; return whether it responds with this status."""
        self.answer(method, path, body, version)
        return self.answer_seen[0] == status

    def provider(self, total: int = 0) -> str:
        """Create a provider with an inventory of VCPU, and return its path."""
        name = str(uuid.uuid4())
        self.prepare('POST', '/resource_providers', {'uuid': name, 'name': name})
        path = f'/resource_providers/{name}'
        if total:
            self.prepare('PUT', f'{path}/inventories', inventories(total))
        return path

    def consumer(self, provider: str, amount: int = 1) -> str:
        """Claim from a provider, and return the path of the new consumer."""
        path = new_consumer()
        self.prepare('PUT', path, claim_of(provider, amount))
        return path

    def claims(self, status: int, provider: str, amount: int = 1) -> bool:
        """Claim for a new consumer at the second node; return whether the status is this one."""
        return self.answers(status, 'PUT', new_consumer(), claim_of(provider, amount))

    def sets_traits(self, status: int, trait: str) -> bool:
        """Set a trait of a provider at the second node; return whether the status is this one."""
        body = traits(0, id_of(trait))
        return self.answers(status, 'PUT', f'{self.provider()}/traits', body)

    def sets_inventories(self, status: int, name: str) -> bool:
        """Like `sets_traits`, for an inventory of a resource class."""
        body = inventories(8, 0, id_of(name))
        return self.answers(status, 'PUT', f'{self.provider()}/inventories', body)

    def candidates(self, provider: str, query: str = '') -> int:
        """Return the number of candidates for all VCPU of a provider at the second node."""
        path = f'/allocation_candidates?resources=VCPU:8&in_tree={id_of(provider)}{query}'
        return len(self.answer('GET', path)['allocation_requests'])


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
        first, second = ports
        with contextlib.closing(Pair(first, second, **options)) as pair:
            for _, kind in itertools.product(range(rounds), KINDS):
                if not pair.is_fresh(kind):
                    stale.append((kind, pair.answer_seen))

    with futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, range(clients)))
    return stale


def id_of(path: str) -> str:
    """Return the UUID of a provider or a consumer."""
    return path.rpartition('/')[2]


def new_consumer() -> str:
    """Return the path of a consumer that does not exist."""
    return f'/allocations/{uuid.uuid4()}'


def custom_name() -> str:
    """Return a new name of a class or a trait."""
    return f'CUSTOM_{uuid.uuid4().hex.upper()}'


def claim_of(provider: str, amount: int = 1, **members: Any) -> dict[str, Any]:
    """Return the body of a claim of VCPU. Each provider has a project of its own."""
    return claim({id_of(provider): {'VCPU': amount}}, project=id_of(provider), **members)


def inventories(total: int, generation: int = 0, name: str = 'VCPU') -> dict[str, Any]:
    """Return the body that replaces the inventories of a provider."""
    return {'resource_provider_generation': generation, 'inventories': {name: {'total': total}}}


def traits(generation: int, *names: str) -> dict[str, Any]:
    """Return the body that replaces the traits of a provider."""
    return {'resource_provider_generation': generation, 'traits': list(names)}


def aggregates(generation: int) -> dict[str, Any]:
    """Return the body that sets a new aggregate of a provider."""
    return {'resource_provider_generation': generation, 'aggregates': [str(uuid.uuid4())]}


# The writes at the first node. Each returns the path of its object ----------------


def _new_provider(at: Pair) -> str:
    name = str(uuid.uuid4())
    at.decide('POST', '/resource_providers', {'uuid': name, 'name': name})
    return f'/resource_providers/{name}'


def _deleted_provider(at: Pair) -> str:
    own = at.provider(8)
    at.decide('DELETE', own)
    return own


def _new_inventory(at: Pair) -> str:
    own = at.provider()
    at.decide('PUT', f'{own}/inventories', inventories(8))
    return own


def _small_inventory(at: Pair) -> str:
    own = at.provider(8)
    at.decide('PUT', f'{own}/inventories', inventories(1, 1))
    return own


def _new_claim(at: Pair) -> tuple[str, str]:
    own, path = at.provider(8), new_consumer()
    at.decide('PUT', path, claim_of(own, 3))
    return own, path


def _released_claim(at: Pair) -> tuple[str, str]:
    own = at.provider(8)
    path = at.consumer(own, 8)
    at.decide('DELETE', path)
    return own, path


def _new_name(kind: str, delete: bool = False) -> Callable[[Pair], str]:
    def write(at: Pair) -> str:
        path = f'/{kind}/{custom_name()}'
        (at.prepare if delete else at.decide)('PUT', path)
        if delete:
            at.decide('DELETE', path)
        return path

    return write


def _traits(at: Pair) -> str:
    own = at.provider(8)
    at.decide('PUT', f'{own}/traits', traits(1, 'HW_CPU_X86_AVX2'))
    return own


def _aggregates(at: Pair) -> tuple[str, str]:
    own = at.provider(8)
    (name,) = at.decide('PUT', f'{own}/aggregates', aggregates(1))['aggregates']
    return own, name


def _reshaped(own: str, consumer: str, child: str) -> dict[str, Any]:
    """Return a reshape that moves the inventory and the allocation of a provider to another."""
    moved = {**claim_of(child, generation=1), 'project_id': id_of(own)}
    empty = {'resource_provider_generation': 2, 'inventories': {}}
    return {
        'inventories': {id_of(own): empty, id_of(child): inventories(8)},
        'allocations': {id_of(consumer): moved},
    }


def _reshape(at: Pair) -> str:
    child, own = at.provider(), at.provider(8)
    at.decide('POST', '/reshaper', _reshaped(own, at.consumer(own), child))
    return child


# The requests at the second node: a function, or the expected status, the method and the path, the
# body, and the microversion. In the path, numbers stand for what the write has returned.


def _kinds(write: str, first: Callable[[Pair], Any], requests: Mapping[str, Any]) -> None:
    """Register the pairs of a write."""

    def send(at: Pair, request: Any) -> bool:
        own = first(at)
        if callable(request):
            return bool(request(at, own))
        status, line, *rest = request
        method, path = line.format(*(own if isinstance(own, tuple) else (own,))).split(' ')
        return at.answers(status, method, path, *rest)

    for name, request in requests.items():
        KINDS[f'{write} -> {name}'] = functools.partial(send, request=request)


_kinds(
    'POST provider',
    _new_provider,
    {
        'PUT inventories': (200, 'PUT {}/inventories', inventories(8)),
        'POST inventory': (201, 'POST {}/inventories', {'resource_class': 'VCPU', 'total': 8}),
        'PUT aggregates': (200, 'PUT {}/aggregates', aggregates(0)),
        'PUT aggregates, 1.18': (200, 'PUT {}/aggregates', [str(uuid.uuid4())], '1.18'),
        'PUT traits': (200, 'PUT {}/traits', traits(0)),
        'PUT provider': lambda at, own: at.answers(200, 'PUT', own, {'name': custom_name()}),
        'POST child': lambda at, own: at.answers(
            *(200, 'POST', '/resource_providers'),
            {'name': custom_name(), 'parent_provider_uuid': id_of(own)},
        ),
        'POST provider of the same name': lambda at, own: at.answers(
            409, 'POST', '/resource_providers', {'name': id_of(own)}
        ),
        'DELETE provider': (204, 'DELETE {}'),
        'GET provider': (200, 'GET {}'),
        'GET providers': lambda at, own: (
            id_of(own) in str(at.answer('GET', f'/resource_providers?name={id_of(own)}'))
        ),
    },
)
_kinds('DELETE provider', _deleted_provider, {'claim': lambda at, own: at.claims(400, own)})
_kinds(
    'PUT inventories',
    _new_inventory,
    {
        'claim': lambda at, own: at.claims(204, own),
        'PUT inventories': (200, 'PUT {}/inventories', inventories(9, 1)),
        'PUT inventory': (
            *(200, 'PUT {}/inventories/VCPU'),
            {'total': 9, 'resource_provider_generation': 1},
        ),
        'DELETE inventories': lambda at, own: (
            at.answers(204, 'DELETE', f'{own}/inventories')
            and at.prepare('GET', f'{own}/inventories')['inventories'] == {}
        ),
        'DELETE inventory': (204, 'DELETE {}/inventories/VCPU'),
        'GET inventories': lambda at, own: 'VCPU' in str(at.answer('GET', f'{own}/inventories')),
        'GET inventory': (200, 'GET {}/inventories/VCPU'),
        'GET candidates': lambda at, own: at.candidates(own) == 1,
    },
)
_kinds('shrink inventory', _small_inventory, {'claim': lambda at, own: at.claims(409, own, 8)})
_kinds(
    'claim',
    _new_claim,
    {
        'claim of the same capacity': lambda at, own: at.claims(409, own[0], 6),
        'claim of the consumer as a new one': lambda at, own: at.answers(
            409, 'PUT', own[1], claim_of(own[0])
        ),
        'change of the claim': lambda at, own: at.answers(
            204, 'PUT', own[1], claim_of(own[0], 2, generation=1)
        ),
        'POST allocations': lambda at, own: at.answers(
            *(204, 'POST', '/allocations'),
            {id_of(own[1]): claim({}, generation=1), str(uuid.uuid4()): claim_of(own[0])},
        ),
        'POST reshaper': lambda at, own: at.answers(
            204, 'POST', '/reshaper', _reshaped(*own, at.provider())
        ),
        'DELETE allocations': (204, 'DELETE {1}'),
        'DELETE inventory': (409, 'DELETE {0}/inventories/VCPU'),
        'DELETE provider': (409, 'DELETE {0}'),
        'GET allocations': lambda at, own: at.answer('GET', own[1])['allocations'],
        'GET allocations of the provider': lambda at, own: at.answer(
            'GET', f'{own[0]}/allocations'
        )['allocations'],
        'GET usages of the provider': lambda at, own: (
            at.answer('GET', f'{own[0]}/usages')['usages'] == {'VCPU': 3}
        ),
        'GET usages of the project': lambda at, own: at.answer(
            'GET', f'/usages?project_id={id_of(own[0])}'
        )['usages'],
        'GET candidates': lambda at, own: at.candidates(own[0]) == 0,
    },
)
_kinds(
    'DELETE allocations',
    _released_claim,
    {
        'claim of the capacity': lambda at, own: at.claims(204, own[0], 8),
        'claim of the consumer': lambda at, own: at.answers(204, 'PUT', own[1], claim_of(own[0])),
    },
)
_kinds(
    'PUT trait',
    _new_name('traits'),
    {
        'PUT traits': lambda at, own: at.sets_traits(200, own),
        'PUT trait': (204, 'PUT {}'),
        'DELETE trait': (204, 'DELETE {}'),
        'GET trait': (204, 'GET {}'),
        'GET traits': lambda at, own: (
            at.answer('GET', f'/traits?name=in:{id_of(own)}')['traits'] == [id_of(own)]
        ),
    },
)
_kinds(
    'DELETE trait',
    _new_name('traits', delete=True),
    {'PUT traits': lambda at, own: at.sets_traits(400, own)},
)
_kinds(
    'PUT traits',
    _traits,
    {
        'GET traits of the provider': lambda at, own: at.answer('GET', f'{own}/traits')['traits'],
        'DELETE traits': lambda at, own: (
            at.answers(204, 'DELETE', f'{own}/traits')
            and at.prepare('GET', f'{own}/traits')['traits'] == []
        ),
        'GET candidates': lambda at, own: at.candidates(own, '&required=HW_CPU_X86_AVX2') == 1,
    },
)
_kinds(
    'PUT aggregates',
    _aggregates,
    {
        'PUT aggregates': (200, 'PUT {0}/aggregates', aggregates(2)),
        'GET aggregates': lambda at, own: (
            at.answer('GET', f'{own[0]}/aggregates')['aggregates'] == [own[1]]
        ),
        'GET candidates': lambda at, own: at.candidates(own[0], f'&member_of={own[1]}') == 1,
    },
)
_kinds(
    'PUT class',
    _new_name('resource_classes'),
    {
        'PUT inventories': lambda at, own: at.sets_inventories(200, own),
        'PUT and DELETE class': lambda at, own: (
            at.answers(204, 'PUT', own) and at.answers(204, 'DELETE', own)
        ),
        'PUT class, 1.6': lambda at, own: at.answers(
            200, 'PUT', own, {'name': custom_name()}, '1.6'
        ),
        'GET class': (200, 'GET {}'),
        'GET classes': lambda at, own: id_of(own) in str(at.answer('GET', '/resource_classes')),
    },
)
_kinds(
    'DELETE class',
    _new_name('resource_classes', delete=True),
    {'PUT inventories': lambda at, own: at.sets_inventories(400, own)},
)
_kinds('POST reshaper', _reshape, {'claim': lambda at, child: at.claims(204, child, 7)})
