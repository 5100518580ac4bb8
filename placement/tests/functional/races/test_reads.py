"""A search of several pages reads one state of the database, whatever other requests write."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import threading
from typing import Any
import uuid

from sqlalchemy import event

from placement.db import engine as db_engine
from placement.tests.functional.races import testcase
from placement.tests.waiting import LONGEST

# More than the first page of a search contains.
HOSTS = 24
SEARCH = '/allocation_candidates?resources=VCPU:1'


class ReadsTest(testcase.FileTestCase):
    def test_consumer_moves_between_two_pages_of_a_search(self) -> None:
        """The usages in a response are those of one point in time, so their sum stays the same."""
        hosts = [self.make_provider({'VCPU': 100}) for _ in range(HOSTS)]
        self.send_ok(
            'PUT', f'/allocations/{uuid.uuid4()}', testcase.claim(dict.fromkeys(hosts, 10))
        )
        consumer = str(uuid.uuid4())
        self.move(consumer, hosts[0])
        for random, least in (False, 2), (True, 1):
            self.config.set_override('randomize_allocation_candidates', random, 'placement')
            with self.interrupted(0, print) as statements:
                self.check_sum()
            self.assertGreater(statements(), least)
            for boundary in range(1, statements()):
                # The consumer moves forward, back, and forward again.
                for target in (hosts[-1], hosts[0], hosts[-1]):
                    with self.interrupted(boundary, functools.partial(self.move, consumer, target)):
                        self.check_sum()

    def test_search_that_fails_leaves_no_snapshot(self) -> None:
        """Whichever statement fails, the next read on the connection reads fresh data."""
        self.make_provider({'VCPU': 100})
        with self.interrupted(0, print) as statements:
            self.search()
        for boundary in range(1, statements() + 1):
            with self.interrupted(boundary, functools.partial(self.fail, 'broken')):
                self.send('GET', SEARCH)
            self.assertIn(self.make_provider({'VCPU': 100}), self.search())

    def search(self) -> Mapping[str, Any]:
        """Return the summaries of the providers."""
        return self.send_ok('GET', SEARCH)['provider_summaries']

    def move(self, consumer: str, host: str) -> None:
        """Let a consumer use one VCPU of a host, and nothing else."""
        self.send_ok('PUT', f'/allocations/{consumer}', testcase.claim_1_27({host: 1}), '1.27')

    def check_sum(self) -> None:
        summaries = self.search().values()
        self.assertEqual(HOSTS, len(summaries))
        used = [summary['resources']['VCPU']['used'] for summary in summaries]
        self.assertEqual(10 * HOSTS + 1, sum(used), used)

    @contextlib.contextmanager
    def interrupted(self, boundary: int, write: Callable[[], Any]) -> Iterator[Callable[[], int]]:
        """Call `write` in another thread after this thread executed that many statements.

        :returns: a function that returns the number of statements
        """
        reader, executed = threading.get_ident(), []

        def interrupt(*_: Any) -> None:
            if threading.get_ident() == reader:
                executed.append(1)
                if len(executed) == boundary:
                    testcase.start(write).result(LONGEST)

        engine = db_engine.get_pools().reader
        event.listen(engine, 'after_cursor_execute', interrupt)
        try:
            yield lambda: len(executed)
        finally:
            event.remove(engine, 'after_cursor_execute', interrupt)
        self.assertGreaterEqual(len(executed), boundary)
