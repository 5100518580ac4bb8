"""What a request body costs in memory, whatever is in it."""

from collections.abc import Iterator
import contextlib
import http.client
import os
from pathlib import Path
import tempfile

from oslotest import base

from placement.tests import servers
from placement.tests.functional.faults import machines

MIB = 1024 * 1024
BOUND = 64 * MIB
PROVIDER = '11111111-1111-1111-1111-111111111111'
HEADERS = {
    'X-Auth-Token': 'admin',
    'X-Roles': 'admin,service',
    'OpenStack-API-Version': 'placement 1.39',
    'Content-Type': 'application/json',
}
# Every route that reads a body.
ROUTES = (
    ('POST', '/resource_classes'),
    ('POST', '/resource_providers'),
    ('PUT', f'/resource_providers/{PROVIDER}'),
    ('POST', f'/resource_providers/{PROVIDER}/inventories'),
    ('PUT', f'/resource_providers/{PROVIDER}/inventories'),
    ('PUT', f'/resource_providers/{PROVIDER}/inventories/VCPU'),
    ('PUT', f'/resource_providers/{PROVIDER}/aggregates'),
    ('PUT', f'/resource_providers/{PROVIDER}/traits'),
    ('PUT', f'/allocations/{PROVIDER}'),
    ('POST', '/allocations'),
    ('POST', '/reshaper'),
)


def repeated(unit: bytes, size: int = MIB) -> bytes:
    """A list of this size that repeats one element."""
    return b'[' + b','.join([unit] * ((size - 1) // (len(unit) + 1))) + b']'


def keys(value: bytes) -> bytes:
    """An object of at most 1 MiB with as many keys as fit."""
    members, left = [], MIB - 2
    while left > 0:
        member = b'"%x":%b' % (len(members), value)
        left -= len(member) + 1
        members.append(member)
    return b'{' + b','.join(members[:-1]) + b'}'


SHAPES = {
    'empty lists': repeated(b'[]'),
    'empty objects': repeated(b'{}'),
    'objects of one key': repeated(b'{"":{}}'),
    'nested lists': repeated(b'[' * 900 + b']' * 900),
    'nested objects': repeated(b'{"a":' * 900 + b'0' + b'}' * 900),
    'numbers': repeated(b'1e9'),
    'a text': b'"' + b'x' * (MIB - 2) + b'"',
    'a text of escapes': b'"' + rb'\u0001' * ((MIB - 2) // 6) + b'"',
    'empty texts': repeated(b'""'),
    'NUL': repeated(rb'"\u0000"'),
    'keys': keys(b'0'),
    'keys of objects': keys(b'{}'),
}


def chunks() -> Iterator[bytes]:
    """A body of 32 MiB of empty lists, which does not tell its size in advance."""
    yield b'['
    for _ in range(31):
        yield b'[],' * (MIB // 3)
    yield b'[]]'


class BodyMemoryTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        if servers.ADMIN_URL in os.environ:
            self.skipTest('this is about bodies, and SQLite serves as well')
        if not Path('/proc/self/status').exists():
            self.skipTest('this needs the figures of /proc')
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.worker = machines.Worker(
            f'sqlite:///{folder.name}/placement.db',
            settings={
                'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
                # Otherwise the figures depend on which thread serves which request.
                'MALLOC_ARENA_MAX': '1',
            },
        )
        self.addCleanup(self.worker.remove)
        provider = b'{"name": "one", "uuid": "%b"}' % PROVIDER.encode()
        self.assertEqual(200, self.send('POST', '/resource_providers', provider))
        for method, path in ROUTES:
            self.send(method, path, b'[]')

    def send(self, method: str, path: str, body: bytes | Iterator[bytes]) -> int:
        connection = http.client.HTTPConnection('127.0.0.1', self.worker.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, HEADERS)
            return connection.getresponse().status

    def memory(self, name: str) -> int:
        """A figure of the worker in bytes: `VmRSS` is the present, `VmHWM` the most so far."""
        status = Path(f'/proc/{self.worker.pid}/status').read_text()
        (line,) = (line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024

    def test_bodies_of_1_mib(self) -> None:
        before = self.memory('VmRSS')
        for shape, body in SHAPES.items():
            for method, path in ROUTES:
                self.assertEqual(400, self.send(method, path, body), f'{shape} to {path}')
            self.assertLess(self.memory('VmHWM') - before, BOUND, shape)

    def test_larger_bodies(self) -> None:
        before = self.memory('VmRSS')
        self.assertEqual(413, self.send('POST', '/allocations', repeated(b'[]', 32 * MIB)))
        self.assertEqual(413, self.send('POST', '/allocations', chunks()))
        self.assertLess(self.memory('VmHWM') - before, BOUND)
