"""The exporter: pages with and without the database, their formats, and its log."""

import gzip
import logging
import queue
import threading

import fixtures
from oslotest import base

from placement.admin.capacity_metrics import reading
from placement.admin.capacity_metrics.exporter import Exporter, Latest
from placement.admin.failure import CannotProceedError
from placement.tests.waiting import wait_until

LONG = 60
VALUE = (('small', 3),)
DOWN, UP = b'placement_up 0.0', b'placement_up 1.0'


class LatestTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.admin.capacity_metrics'))
        self.results = queue.Queue()
        self.started = queue.Queue()
        self.time = 0.0
        self.latest = Latest('headroom', self.compute, 300, (), lambda: self.time)
        self.addCleanup(self.results.put, ())

    def compute(self):
        self.started.put(None)
        result = self.results.get(timeout=LONG)
        if isinstance(result, Exception):
            raise result
        return result

    def wait_for(self, expected):
        wait_until(lambda: self.latest.value() == expected)

    def test_a_value_is_kept_until_the_next_one_is_computed(self):
        self.assertEqual((), self.latest.value())
        self.assertEqual((), self.latest.value())
        self.results.put(VALUE)
        self.wait_for(VALUE)
        self.time = 299
        self.assertEqual(VALUE, self.latest.value())
        self.assertEqual(1, self.started.qsize())
        self.time = 300
        self.assertEqual(VALUE, self.latest.value())
        self.results.put((('small', 4),))
        self.wait_for((('small', 4),))
        self.assertEqual(2, self.started.qsize())

    def test_a_value_older_than_the_interval_is_returned_until_the_next_one_is_computed(self):
        self.assertEqual((), self.latest.value())
        self.started.get(timeout=LONG)
        self.time = 1000
        self.results.put(VALUE)
        # This request starts the next computation.
        wait_until(lambda: self.latest.value() == VALUE and self.started.qsize())
        self.assertEqual(VALUE, self.latest.value())

    def test_a_failure(self):
        self.results.put(VALUE)
        self.wait_for(VALUE)
        self.time = 300
        self.results.put(CannotProceedError('No such trait X.'))
        self.wait_for(())
        self.assertEqual('The headroom cannot be computed: No such trait X.\n', self.log.output)
        # A failure does not lead to more computations.
        self.assertEqual(((), 2), (self.latest.value(), self.started.qsize()))


class ExporterTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(
            fixtures.FakeLogger('placement.admin.capacity_metrics', logging.INFO)
        )
        self.error = None
        self.unlisted = 0
        self.reads = 0
        self.proceed = threading.Event()
        self.proceed.set()
        self.addCleanup(self.proceed.set)
        self.exporter = Exporter(self.read, keep=30)

    def read(self) -> reading.Cloud:
        self.proceed.wait(LONG)
        self.reads += 1
        if self.error:
            raise self.error
        return reading.Cloud((), self.reads, 0, 0, unlisted=self.unlisted)

    def lines(self, seconds: float = LONG) -> list[bytes]:
        """Return the lines of a page, without comments."""
        text = self.exporter.page(seconds).render().body
        return [line for line in text.splitlines() if not line.startswith(b'#')]

    def test_a_page_is_shared(self):
        self.assertIs(self.exporter.page(LONG), self.exporter.page(LONG))
        self.assertIn(UP, self.lines())
        self.assertEqual((1, ''), (self.reads, self.log.output))

    def test_formats(self):
        page = self.exporter.page(LONG)
        text = page.render()
        self.assertEqual('text/plain; version=0.0.4; charset=utf-8', text.content_type)
        compressed = page.render(accept_encoding='br, gzip;q=0.8')
        self.assertEqual(('gzip', None), (compressed.encoding, text.encoding))
        self.assertEqual(text.body, gzip.decompress(compressed.body))
        openmetrics = page.render('application/openmetrics-text;version=1.0.0,text/plain;q=0.5')
        self.assertEqual('application/openmetrics-text; version=1.0', openmetrics.content_type[:41])
        self.assertEqual(text.body + b'# EOF\n', openmetrics.body)
        for accept in (
            *('application/openmetrics-text;version=x', 'application/openmetrics-text;version=1.x'),
            *('text/plain;version=x', 'text/html, */*', ';;,=,'),
        ):
            self.assertEqual(text.body, page.render(accept).body)

    def test_the_text_of_each_format_is_rendered_once_and_few_are_kept(self):
        page = self.exporter.page(LONG)
        first = page.render()
        self.assertIs(first, page.render())
        for number in range(20):
            page.render(f'application/openmetrics-text;version=1.{number}')
            page.render(f'application/openmetrics-text;version=1.{number}', 'gzip')
        self.assertIsNot(first, page.render())

    def test_providers_without_a_root_are_logged_if_their_number_changes(self):
        self.exporter = Exporter(self.read, keep=0)
        for self.unlisted in (0, 2, 2, 0, 3):
            self.exporter.page(LONG)
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
        self.assertIn(b'placement_providers 3.0', self.lines())
        self.assertIn(b'placement_providers 3.0', self.lines())
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
            self.assertEqual([DOWN], self.lines(seconds=0.01))
        self.proceed.set()
        self.assertIn(b'placement_providers 1.0', self.lines())
        self.assertEqual(
            [
                'The database cannot be read: There is no result after 0.01 seconds.',
                'The database can be read again.',
            ],
            self.log.output.splitlines(),
        )
