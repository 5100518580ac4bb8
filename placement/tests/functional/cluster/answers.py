"""Pairs of requests: a write at one node, and a request at another node that depends on it.

Each function in `KINDS` sends one pair. It returns whether the response at the second node reflects
the write that the first node has acknowledged.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent import futures
import contextlib
import http.client
import itertools
import json
import threading
import time
from typing import Any, Protocol
import uuid

from placement.tests.functional.base import claim
from placement.tests.functional.faults import storm
from placement.tests.waiting import LONGEST

# The request at the second node begins with an INSERT or an UPDATE, and a node that has not applied
# the write of the first node rejects it.
WRITE_FIRST: set[str] = set()
KINDS: dict[str, Callable[['Pair'], bool]] = {}


class Client:
    """A client with a persistent connection to an API process."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection('127.0.0.1', port, timeout=LONGEST)

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

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Gate(Protocol):
    """Stops the applier of a node, which then applies no changes of other nodes."""

    def hold(self) -> None:
        """Stop the applier until `release` is called."""

    def release(self) -> None:
        """Let the applier continue."""


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

    def prepare(self, method: str, path: str, body: Any = None, version: str = 'latest') -> Any:
        """Send a request to the first node, require its success, and return the document."""
        status, document = self._first.send(method, path, body, version)
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

    def answer(
        self, method: str, path: str, body: Any = None, version: str = 'latest'
    ) -> tuple[int, Any]:
        """Send a request to the second node; return the status and the document."""
        self.answer_seen = self._second.send(method, path, body, version)
        return self.answer_seen

    def answers(
        self, status: int, method: str, path: str, body: Any = None, **options: str
    ) -> bool:
        """Send a request to the second node; return whether it responds with this status."""
        return self.answer(method, path, body, **options)[0] == status

    # Parts of many kinds --------------------------------------------------------

    def provider(self, total: int | None = None, decides: bool = False) -> 'Provider':
        """Create a provider, with an inventory of VCPU if there is a total.

        :param decides: whether the last request decides
        """
        own = Provider(str(uuid.uuid4()))
        create = self.decide if decides and total is None else self.prepare
        create('POST', '/resource_providers', {'uuid': own.uuid, 'name': own.uuid})
        if total is not None:
            write = self.decide if decides else self.prepare
            write('PUT', f'{own.path}/inventories', inventories(total))
        return own

    def consumer(self, own: 'Provider', amount: int = 1, decides: bool = False) -> str:
        """Claim from a provider, and return the path of the new consumer."""
        path = new_consumer()
        write = self.decide if decides else self.prepare
        write('PUT', path, claim({own.uuid: {'VCPU': amount}}, project=own.uuid))
        return path

    def claims(self, status: int, *providers: 'Provider', amount: int = 1) -> bool:
        """Claim for a new consumer at the second node; return whether the status is this one."""
        body = claim({own.uuid: {'VCPU': amount} for own in providers})
        return self.answers(status, 'PUT', new_consumer(), body)


class Results:
    """The pairs that were sent, and those whose response did not reflect the write."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.stale: list[tuple[str, Any]] = []

    def describe(self, name: str) -> str:
        """Return a line for each kind, and one for the total."""
        stale = Counter(kind for kind, _ in self.stale)
        lines = [f'{kind}: {sent} pairs, {stale[kind]} stale' for kind, sent in self.sent.items()]
        lines.append(f'{self.sent.total()} pairs, {len(self.stale)} stale')
        return '\n'.join(f'{name}: {line}' for line in lines)


def send_pairs(ports: Sequence[int], rounds: int = 1, clients: int = 1, **options: Any) -> Results:
    """Send all kinds of pairs in each round of each client.

    :param ports: the API processes of the first and of the second node
    :param options: arguments of `Pair`
    """
    results = Results()

    def send(_client: int) -> None:
        first, second = ports
        with contextlib.closing(Pair(first, second, **options)) as pair:
            for _, kind in itertools.product(range(rounds), KINDS):
                if not pair.is_fresh(kind):
                    results.stale.append((kind, pair.answer_seen))
                results.sent[kind] += 1

    with futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, range(clients)))
    return results


class Provider:
    """A provider of a pair."""

    def __init__(self, uuid_: str) -> None:
        self.uuid = uuid_
        self.path = f'/resource_providers/{uuid_}'


def new_consumer() -> str:
    """Return the path of a consumer that does not exist."""
    return f'/allocations/{uuid.uuid4()}'


def custom_name() -> str:
    """Return a new name of a class or a trait."""
    return f'CUSTOM_{uuid.uuid4().hex.upper()}'


def inventories(total: int, generation: int = 0, name: str = 'VCPU') -> dict[str, Any]:
    """Return the body that replaces the inventories of a provider."""
    return {'resource_provider_generation': generation, 'inventories': {name: {'total': total}}}


def traits(generation: int, *names: str) -> dict[str, Any]:
    """Return the body that replaces the traits of a provider."""
    return {'resource_provider_generation': generation, 'traits': list(names)}


def aggregates(generation: int, *uuids: str) -> dict[str, Any]:
    """Return the body that replaces the aggregates of a provider."""
    return {'resource_provider_generation': generation, 'aggregates': list(uuids)}


def kind(name: str, write_first: bool = False) -> Callable[[Callable[[Pair], bool]], Any]:
    """Register a kind of pairs: the write at the first node -> the request at the second one."""

    def register(function: Callable[[Pair], bool]) -> Callable[[Pair], bool]:
        KINDS[name] = function
        if write_first:
            WRITE_FIRST.add(name)
        return function

    return register


# A new provider -------------------------------------------------------------------


@kind('POST provider -> PUT inventories', write_first=True)
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(200, 'PUT', f'{own.path}/inventories', inventories(8))


@kind('POST provider -> PUT aggregates', write_first=True)
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(200, 'PUT', f'{own.path}/aggregates', aggregates(0, str(uuid.uuid4())))


@kind('POST provider -> PUT aggregates, 1.18')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    body = [str(uuid.uuid4())]
    return at.answers(200, 'PUT', f'{own.path}/aggregates', body, version='1.18')


@kind('POST provider -> POST inventory')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    body = {'resource_class': 'VCPU', 'total': 8}
    return at.answers(201, 'POST', f'{own.path}/inventories', body)


@kind('POST provider -> PUT traits')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(200, 'PUT', f'{own.path}/traits', traits(0, 'HW_CPU_X86_AVX2'))


@kind('POST provider -> PUT provider')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(200, 'PUT', own.path, {'name': f'new {own.uuid}'})


@kind('POST provider -> POST child')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    body = {'name': str(uuid.uuid4()), 'parent_provider_uuid': own.uuid}
    return at.answers(200, 'POST', '/resource_providers', body)


@kind('POST provider -> POST provider of the same name')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(409, 'POST', '/resource_providers', {'name': own.uuid})


@kind('POST provider -> PUT its parent')
def _(at: Pair) -> bool:
    child = at.provider()
    own = at.provider(decides=True)
    body = {'name': child.uuid, 'parent_provider_uuid': own.uuid}
    return at.answers(200, 'PUT', child.path, body)


@kind('POST provider -> DELETE provider')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(204, 'DELETE', own.path)


@kind('POST provider -> GET provider')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    return at.answers(200, 'GET', own.path)


@kind('POST provider -> GET providers')
def _(at: Pair) -> bool:
    own = at.provider(decides=True)
    _, document = at.answer('GET', f'/resource_providers?name={own.uuid}')
    return [one['uuid'] for one in document['resource_providers']] == [own.uuid]


@kind('DELETE provider -> claim')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.decide('DELETE', own.path)
    return at.claims(400, own)


@kind('DELETE provider -> GET provider')
def _(at: Pair) -> bool:
    own = at.provider()
    at.decide('DELETE', own.path)
    return at.answers(404, 'GET', own.path)


# Inventories ----------------------------------------------------------------------


@kind('PUT inventories -> claim', write_first=True)
def _(at: Pair) -> bool:
    return at.claims(204, at.provider(8, decides=True))


@kind('PUT inventories -> claim of several providers')
def _(at: Pair) -> bool:
    first = at.provider(8)
    return at.claims(204, first, at.provider(8, decides=True))


@kind('enlarge inventory -> claim', write_first=True)
def _(at: Pair) -> bool:
    own = at.provider(1)
    at.decide('PUT', f'{own.path}/inventories', inventories(8, 1))
    return at.claims(204, own, amount=8)


@kind('shrink inventory -> claim')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.decide('PUT', f'{own.path}/inventories', inventories(1, 1))
    return at.claims(409, own, amount=8)


@kind('PUT inventory -> PUT inventory')
def _(at: Pair) -> bool:
    own = at.provider(8)
    path, body = f'{own.path}/inventories/VCPU', {'total': 9, 'resource_provider_generation': 1}
    at.decide('PUT', path, body)
    return at.answers(200, 'PUT', path, {**body, 'resource_provider_generation': 2})


@kind('PUT inventories -> PUT inventories')
def _(at: Pair) -> bool:
    own = at.provider(8, decides=True)
    return at.answers(200, 'PUT', f'{own.path}/inventories', inventories(9, 1))


@kind('PUT inventories -> DELETE inventories')
def _(at: Pair) -> bool:
    own = at.provider(8, decides=True)
    status, _ = at.answer('DELETE', f'{own.path}/inventories')
    return status == 204 and at.prepare('GET', f'{own.path}/inventories')['inventories'] == {}


@kind('PUT inventories -> DELETE inventory')
def _(at: Pair) -> bool:
    own = at.provider(8, decides=True)
    return at.answers(204, 'DELETE', f'{own.path}/inventories/VCPU')


@kind('PUT inventories -> GET inventories')
def _(at: Pair) -> bool:
    own = at.provider(8, decides=True)
    return 'VCPU' in at.answer('GET', f'{own.path}/inventories')[1]['inventories']


@kind('PUT inventories -> GET inventory')
def _(at: Pair) -> bool:
    own = at.provider(8, decides=True)
    return at.answers(200, 'GET', f'{own.path}/inventories/VCPU')


@kind('PUT inventories -> GET providers with resources')
def _(at: Pair) -> bool:
    own = at.provider(8, decides=True)
    query = f'/resource_providers?in_tree={own.uuid}&resources=VCPU:8'
    return len(at.answer('GET', query)[1]['resource_providers']) == 1


@kind('PUT inventories -> GET candidates')
def _(at: Pair) -> bool:
    return _candidates(at, at.provider(8, decides=True)) == 1


def _candidates(at: Pair, own: Provider, query: str = '') -> int:
    path = f'/allocation_candidates?resources=VCPU:8&in_tree={own.uuid}{query}'
    return len(at.answer('GET', path)[1]['allocation_requests'])


# Allocations ----------------------------------------------------------------------


@kind('DELETE allocations -> claim of the capacity', write_first=True)
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.decide('DELETE', at.consumer(own, 8))
    return at.claims(204, own, amount=8)


@kind('claim -> claim of the same capacity')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, 8, decides=True)
    return at.claims(409, own)


@kind('DELETE allocations -> claim of the consumer', write_first=True)
def _(at: Pair) -> bool:
    own = at.provider(8)
    path = at.consumer(own)
    at.decide('DELETE', path)
    return at.answers(204, 'PUT', path, claim({own.uuid: {'VCPU': 1}}))


@kind('claim -> claim of the consumer as a new one')
def _(at: Pair) -> bool:
    own = at.provider(8)
    path = at.consumer(own, decides=True)
    return at.answers(409, 'PUT', path, claim({own.uuid: {'VCPU': 1}}))


@kind('claim -> change of the claim')
def _(at: Pair) -> bool:
    own = at.provider(8)
    path = at.consumer(own, decides=True)
    return at.answers(204, 'PUT', path, claim({own.uuid: {'VCPU': 2}}, generation=1))


@kind('claim -> POST allocations')
def _(at: Pair) -> bool:
    own = at.provider(8)
    path = at.consumer(own, decides=True)
    old, new = path.rpartition('/')[2], str(uuid.uuid4())
    body = {
        old: claim({}, generation=1, project=own.uuid),
        new: claim({own.uuid: {'VCPU': 1}}),
    }
    return at.answers(204, 'POST', '/allocations', body)


@kind('claim -> claim of nothing')
def _(at: Pair) -> bool:
    path = at.consumer(at.provider(8), decides=True)
    return at.answers(204, 'PUT', path, claim({}, generation=1))


@kind('claim -> DELETE allocations')
def _(at: Pair) -> bool:
    return at.answers(204, 'DELETE', at.consumer(at.provider(8), decides=True))


@kind('claim -> DELETE inventory')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, decides=True)
    return at.answers(409, 'DELETE', f'{own.path}/inventories/VCPU')


@kind('claim -> DELETE provider')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, decides=True)
    return at.answers(409, 'DELETE', own.path)


@kind('claim -> GET allocations')
def _(at: Pair) -> bool:
    return bool(at.answer('GET', at.consumer(at.provider(8), decides=True))[1]['allocations'])


@kind('DELETE allocations -> GET allocations')
def _(at: Pair) -> bool:
    path = at.consumer(at.provider(8))
    at.decide('DELETE', path)
    return at.answer('GET', path)[1]['allocations'] == {}


@kind('claim -> GET allocations of the provider')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, decides=True)
    return len(at.answer('GET', f'{own.path}/allocations')[1]['allocations']) == 1


@kind('claim -> GET usages of the provider')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, 3, decides=True)
    return at.answer('GET', f'{own.path}/usages')[1]['usages'] == {'VCPU': 3}


@kind('claim -> GET usages of the project')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, 3, decides=True)
    document = at.answer('GET', f'/usages?project_id={own.uuid}')[1]
    return document['usages'] == {'INSTANCE': {'VCPU': 3, 'consumer_count': 1}}


@kind('claim -> GET candidates')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.consumer(own, decides=True)
    return _candidates(at, own) == 0


# Traits, aggregates and classes ---------------------------------------------------


@kind('PUT trait -> PUT traits')
def _(at: Pair) -> bool:
    own, name = at.provider(), custom_name()
    at.decide('PUT', f'/traits/{name}')
    return at.answers(200, 'PUT', f'{own.path}/traits', traits(0, name))


@kind('PUT trait -> DELETE trait')
def _(at: Pair) -> bool:
    name = custom_name()
    at.decide('PUT', f'/traits/{name}')
    return at.answers(204, 'DELETE', f'/traits/{name}')


@kind('PUT trait -> PUT trait')
def _(at: Pair) -> bool:
    name = custom_name()
    at.decide('PUT', f'/traits/{name}')
    return at.answers(204, 'PUT', f'/traits/{name}')


@kind('DELETE trait -> PUT traits')
def _(at: Pair) -> bool:
    own, name = at.provider(), custom_name()
    at.prepare('PUT', f'/traits/{name}')
    at.decide('DELETE', f'/traits/{name}')
    return at.answers(400, 'PUT', f'{own.path}/traits', traits(0, name))


@kind('PUT trait -> GET trait')
def _(at: Pair) -> bool:
    name = custom_name()
    at.decide('PUT', f'/traits/{name}')
    return at.answers(204, 'GET', f'/traits/{name}')


@kind('PUT trait -> GET traits')
def _(at: Pair) -> bool:
    name = custom_name()
    at.decide('PUT', f'/traits/{name}')
    return at.answer('GET', f'/traits?name=in:{name}')[1]['traits'] == [name]


@kind('PUT traits -> GET traits of the provider')
def _(at: Pair) -> bool:
    own = at.provider()
    at.decide('PUT', f'{own.path}/traits', traits(0, 'HW_CPU_X86_AVX2'))
    return at.answer('GET', f'{own.path}/traits')[1]['traits'] == ['HW_CPU_X86_AVX2']


@kind('PUT traits -> DELETE traits')
def _(at: Pair) -> bool:
    own = at.provider()
    at.decide('PUT', f'{own.path}/traits', traits(0, 'HW_CPU_X86_AVX2'))
    status, _ = at.answer('DELETE', f'{own.path}/traits')
    return status == 204 and at.prepare('GET', f'{own.path}/traits')['traits'] == []


@kind('PUT traits -> PUT inventories')
def _(at: Pair) -> bool:
    own = at.provider()
    at.decide('PUT', f'{own.path}/traits', traits(0, 'HW_CPU_X86_AVX2'))
    return at.answers(200, 'PUT', f'{own.path}/inventories', inventories(8, 1))


@kind('PUT traits -> GET candidates')
def _(at: Pair) -> bool:
    own = at.provider(8)
    at.decide('PUT', f'{own.path}/traits', traits(1, 'HW_CPU_X86_AVX2'))
    return _candidates(at, own, '&required=HW_CPU_X86_AVX2') == 1


@kind('PUT aggregates -> PUT aggregates', write_first=True)
def _(at: Pair) -> bool:
    own = at.provider()
    at.decide('PUT', f'{own.path}/aggregates', aggregates(0, str(uuid.uuid4())))
    return at.answers(200, 'PUT', f'{own.path}/aggregates', aggregates(1, str(uuid.uuid4())))


@kind('PUT aggregates -> GET aggregates')
def _(at: Pair) -> bool:
    own, name = at.provider(), str(uuid.uuid4())
    at.decide('PUT', f'{own.path}/aggregates', aggregates(0, name))
    return at.answer('GET', f'{own.path}/aggregates')[1]['aggregates'] == [name]


@kind('PUT aggregates -> GET providers and candidates of the aggregate')
def _(at: Pair) -> bool:
    own, name = at.provider(8), str(uuid.uuid4())
    at.decide('PUT', f'{own.path}/aggregates', aggregates(1, name))
    listed = at.answer('GET', f'/resource_providers?member_of={name}')[1]
    return len(listed['resource_providers']) == _candidates(at, own, f'&member_of={name}') == 1


@kind('PUT class -> PUT inventories')
def _(at: Pair) -> bool:
    own, name = at.provider(), custom_name()
    at.decide('PUT', f'/resource_classes/{name}')
    return at.answers(200, 'PUT', f'{own.path}/inventories', inventories(8, 0, name))


@kind('DELETE class -> PUT inventories')
def _(at: Pair) -> bool:
    own, name = at.provider(), custom_name()
    at.prepare('PUT', f'/resource_classes/{name}')
    at.decide('DELETE', f'/resource_classes/{name}')
    return at.answers(400, 'PUT', f'{own.path}/inventories', inventories(8, 0, name))


@kind('PUT class -> PUT and DELETE class')
def _(at: Pair) -> bool:
    path = f'/resource_classes/{custom_name()}'
    at.decide('PUT', path)
    return at.answers(204, 'PUT', path) and at.answers(204, 'DELETE', path)


@kind('POST class -> PUT class, 1.6')
def _(at: Pair) -> bool:
    old, new = custom_name(), custom_name()
    at.decide('POST', '/resource_classes', {'name': old})
    return at.answers(200, 'PUT', f'/resource_classes/{old}', {'name': new}, version='1.6')


@kind('PUT class -> GET class and classes')
def _(at: Pair) -> bool:
    name = custom_name()
    at.decide('PUT', f'/resource_classes/{name}')
    if not at.answers(200, 'GET', f'/resource_classes/{name}'):
        return False
    listed = at.answer('GET', '/resource_classes')[1]['resource_classes']
    return name in {one['name'] for one in listed}


# Reshapes -------------------------------------------------------------------------


def _reshape(own: Provider, consumer: str, child: Provider) -> dict[str, Any]:
    """Return a reshape that moves the inventory and the allocation of a provider to another."""
    moved = claim({child.uuid: {'VCPU': 1}}, generation=1, project=own.uuid)
    return {
        'inventories': {
            own.uuid: {'resource_provider_generation': 2, 'inventories': {}},
            child.uuid: inventories(8),
        },
        'allocations': {consumer.rpartition('/')[2]: moved},
    }


@kind('claim -> POST reshaper')
def _(at: Pair) -> bool:
    child, own = at.provider(), at.provider(8)
    consumer = at.consumer(own, decides=True)
    return at.answers(204, 'POST', '/reshaper', _reshape(own, consumer, child))


@kind('POST reshaper -> claim', write_first=True)
def _(at: Pair) -> bool:
    child, own = at.provider(), at.provider(8)
    at.decide('POST', '/reshaper', _reshape(own, at.consumer(own), child))
    return at.claims(204, child, amount=7)


@kind('POST reshaper -> GET allocations')
def _(at: Pair) -> bool:
    child, own = at.provider(), at.provider(8)
    consumer = at.consumer(own)
    at.decide('POST', '/reshaper', _reshape(own, consumer, child))
    return list(at.answer('GET', consumer)[1]['allocations']) == [child.uuid]
