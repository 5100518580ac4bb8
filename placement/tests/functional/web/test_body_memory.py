"""The memory for a request body is bounded, whatever its content is."""

from collections.abc import Iterator
import contextlib
import http.client
from pathlib import Path
import sys

from placement.tests import where
from placement.tests.functional.faults import worker
from placement.tests.functional.web import base
from placement.tests.functional.web.base import HEADERS, PROVIDER
from placement.tests.waiting import LONGEST

MIB = 1024 * 1024
BOUND = 64 * MIB
# The routes that read a body.
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
    """Return a JSON list of this size in bytes, which repeats one element."""
    return b'[' + b','.join([unit] * ((size - 1) // (len(unit) + 1))) + b']'


def keys(value: bytes) -> bytes:
    """Return a JSON object of almost 1 MiB with short keys."""
    count = MIB // (len(value) + 10)
    return b'{' + b','.join(b'"%x":%b' % (number, value) for number in range(count)) + b'}'


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
    """Generate a body of 32 MiB without a Content-Length header."""
    yield b'['
    for _ in range(31):
        yield b'[],' * (MIB // 3)
    yield b'[]]'


@where.at_night('The servers take minutes.')
class BodyMemoryTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        if not Path('/proc/self/status').exists():
            self.skipTest('the test reads memory sizes from /proc')
        self.serve(
            # An interpreter of its own, which reads MALLOC_ARENA_MAX when it starts.
            lambda port: (sys.executable, '-m', worker.__name__, str(port)),
            # With several arenas, the sizes depend on the thread that serves a request.
            {'MALLOC_ARENA_MAX': '1'},
        )
        provider = b'{"name": "one", "uuid": "%b"}' % PROVIDER.encode()
        self.assertEqual(200, self.send('POST', '/resource_providers', provider))
        for method, path in ROUTES:
            self.send(method, path, b'[]')

    def send(self, method: str, path: str, body: bytes | Iterator[bytes]) -> int:
        connection = http.client.HTTPConnection('127.0.0.1', self.worker.port, timeout=LONGEST)
        with contextlib.closing(connection):
            connection.request(method, path, body, HEADERS)
            return connection.getresponse().status

    def memory(self, name: str) -> int:
        """Return a memory size of the worker in bytes.

        :param name: `VmRSS` for the current size, `VmHWM` for the peak
        """
        status = Path(f'/proc/{self.worker.pid}/status').read_text()
        (line,) = (line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024

    def test_memory_for_bodies_is_bounded(self) -> None:
        before = self.memory('VmRSS')
        for shape, body in SHAPES.items():
            for method, path in ROUTES:
                self.assertEqual(400, self.send(method, path, body), f'{shape} to {path}')
            self.assertLess(self.memory('VmHWM') - before, BOUND, shape)
        # Larger bodies are rejected, with and without a length.
        self.assertEqual(413, self.send('POST', '/allocations', repeated(b'[]', 32 * MIB)))
        self.assertEqual(413, self.send('POST', '/allocations', chunks()))
        self.assertLess(self.memory('VmHWM') - before, BOUND)
