"""The server of the exporter: responses with and without the database, and its log."""

import gzip
import logging
import queue
import threading
from unittest import mock

import fixtures
from oslotest import base

from placement.admin import cloud, serving
from placement.admin.console import CannotProceedError
from placement.admin.exporter import State
from placement.candidates.model import Provider
from placement.tests.waiting import wait_until

DOWN, UP = b'placement_up 0.0', b'placement_up 1.0'
LOGGER = 'placement.admin.serving'


class TestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(LOGGER, logging.INFO))
        self.time = 1.0
        clock = mock.patch.object(serving.time, 'monotonic', lambda: self.time)
        clock.start()
        self.addCleanup(clock.stop)


class BackgroundTest(TestCase):
    def setUp(self):
        super().setUp()
        self.results = queue.Queue()
        self.started = queue.Queue()
        self.shared = serving.Shared(lambda: serving.samples('headroom', self.compute), 300)
        self.addCleanup(self.results.put, {})

    def compute(self):
        self.started.put(None)
        result = self.results.get()
        if isinstance(result, Exception):
            raise result
        return result

    def wait_for(self, expected):
        wait_until(lambda: self.shared.refreshed() == expected)

    def test_samples_are_kept_until_the_next_ones_are_computed(self):
        for _ in range(2):
            self.assertIsNone(self.shared.refreshed())
        self.results.put({'fits': 3})
        self.wait_for({'fits': 3})
        for self.time, started in ((300, 1), (301, 2)):
            self.assertEqual({'fits': 3}, self.shared.refreshed())
            wait_until(lambda count=started: self.started.qsize() == count)
        self.results.put({'fits': 4})
        self.wait_for({'fits': 4})
        self.assertEqual(2, self.started.qsize())

    def test_a_failure(self):
        self.results.put({'fits': 3})
        self.wait_for({'fits': 3})
        self.time = 301
        self.results.put(CannotProceedError('No such trait X.'))
        self.wait_for({})
        self.assertEqual('The headroom cannot be computed: No such trait X.\n', self.log.output)
        # A failure does not lead to more computations.
        self.assertEqual(({}, 2), (self.shared.refreshed(), self.started.qsize()))


class ApplicationTest(TestCase):
    def setUp(self):
        super().setUp()
        self.error = None
        self.unlisted = 0
        self.reads = 0
        self.proceed = threading.Event()
        self.proceed.set()
        self.addCleanup(self.proceed.set)
        self.start(keep=30)

    def start(self, keep: float) -> None:
        self.application = serving.Application(lambda: State(self.read(), {}), keep)

    def read(self) -> cloud.Cloud:
        self.proceed.wait()
        self.reads += 1
        if self.error:
            raise self.error
        lost = Provider(1, '', 0, None, frozenset(), frozenset(), {})
        return cloud.Cloud(self.unlisted * [lost], {}, {}, {}, {}, {}, {}, (), self.reads, 0)

    def get(self, seconds: str = '', **headers: str) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a response."""
        started = mock.Mock()
        environ = {f'HTTP_{name.upper()}': value for name, value in headers.items()}
        environ['REQUEST_METHOD'] = 'GET'
        (body,) = self.application(environ | {serving.SCRAPE_TIMEOUT: seconds}, started)
        status, found = started.call_args.args
        self.assertEqual('200 OK', status)
        return dict(found), body

    def lines(self, seconds: str = '') -> list[bytes]:
        """Return the lines of a response, without comments."""
        return [line for line in self.get(seconds)[1].splitlines() if not line.startswith(b'#')]

    def test_a_read_and_its_text_are_shared(self):
        with mock.patch.object(serving, 'Collector', wraps=serving.Collector) as collector:
            self.start(keep=30)
            for _ in range(2):
                self.assertIn(UP, self.lines())
            self.assertIs(self.get()[1], self.get()[1])
        # One of them is for times without the database.
        self.assertEqual((1, 2, ''), (self.reads, collector.call_count, self.log.output))
        self.time = 31
        self.assertIn(b'placement_consumers 2.0', self.lines())

    def test_formats(self):
        headers, text = self.get()
        self.assertEqual('text/plain; version=0.0.4; charset=utf-8', headers['Content-Type'])
        compressed, body = self.get(accept_encoding='br, gzip;q=0.8')
        self.assertEqual('gzip', compressed['Content-Encoding'])
        self.assertEqual(text, gzip.decompress(body))
        headers, body = self.get(
            accept='application/openmetrics-text;version=1.0.0,text/plain;q=0.5'
        )
        self.assertEqual('application/openmetrics-text; version=1.0', headers['Content-Type'][:41])
        self.assertEqual(text + b'# EOF\n', body)
        for accept in (
            *('application/openmetrics-text;version=x', 'application/openmetrics-text;version=1.x'),
            *('text/plain;version=x', 'text/html, */*', ';;,=,'),
        ):
            self.assertEqual(text, self.get(accept=accept)[1])

    def test_other_methods(self):
        for method in ('HEAD', 'POST'):
            started = mock.Mock()
            self.assertEqual([], self.application({'REQUEST_METHOD': method}, started))
            self.assertEqual('405 Method Not Allowed', started.call_args.args[0])
        self.assertEqual(0, self.reads)

    def test_few_texts_are_kept(self):
        first = self.get()[1]
        for number in range(20):
            self.get(accept=f'application/openmetrics-text;version=1.{number}')
        self.assertIsNot(first, self.get()[1])

    def test_providers_without_a_root_are_logged_if_their_number_changes(self):
        self.start(keep=0)
        for self.unlisted in (0, 2, 2, 0, 3):
            self.get()
        self.assertEqual(
            [
                f'The metrics lack the resource providers without a root ({count}). Run '
                '`placement-manage audit --only root-missing`.'
                for count in (2, 3)
            ],
            self.log.output.splitlines(),
        )

    def test_the_database_recovers(self):
        self.error = OSError('no route to host')
        self.assertEqual([DOWN], self.lines())
        self.assertEqual([DOWN], self.lines())
        self.error = None
        for _ in range(2):
            self.assertIn(b'placement_consumers 3.0', self.lines())
        self.assertEqual(
            [
                'The database cannot be read: no route to host',
                'The database can be read again.',
            ],
            self.log.output.splitlines(),
        )

    def test_the_database_hangs(self):
        self.proceed.clear()
        for _ in range(3):
            self.assertEqual([DOWN], self.lines(seconds='0.01'))
        self.proceed.set()
        # Without a valid time limit, a request waits.
        for seconds in ('x', '-1', 'nan', ''):
            self.assertIn(b'placement_consumers 1.0', self.lines(seconds))
        self.assertEqual(
            [
                'The database cannot be read: There is no result after 0.008 seconds.',
                'The database can be read again.',
            ],
            self.log.output.splitlines(),
        )
