"""Pairs of requests, one paused after each of its statements while the other runs."""

from collections.abc import Iterable, Iterator
import itertools
import logging
import sys
from typing import Any, TypeVar
from unittest import mock

from oslotest import base
import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.db.sqlalchemy import models
from placement.objects import generation
from placement.tests import servers, where
from placement.tests.functional.races import schedules, testcase, writers
from placement.tests.functional.races.schedules import Schedule
from placement.tests.functional.races.writers import Request, Start

# At night, all schedules run on MariaDB with PyMySQL, and on PostgreSQL: some 70,000, about 20
# minutes on each.
# Otherwise, one pair of so many. It has no factor in common with the number of requests and is not
# greater, so that each request is among the pairs, in both places.
PART = 59
# The same for the tests of retries, and for those of searches and of a second process.
SMALL_PART = 127
LARGE_PART = 11

# A request that is paused, and the others.
NAMED = (
    ('DELETE allocations: N', 'PUT allocations 1.12: N uses 3 of ROOT'),
    ('PUT allocations: N uses 4 of ROOT', 'PUT allocations 1.12: N uses 3 of ROOT'),
    ('PUT allocations: N uses 4 of ROOT', 'DELETE provider: LEAF'),
    ('PUT allocations: N uses 4 of ROOT', 'PUT allocations: D uses 4 of ROOT'),
    ('PUT allocations 1.12: N uses 3 of ROOT', 'PUT allocations: N uses 4 of ROOT'),
    ('PUT allocations: N uses LEAF and silver of OTHER', 'PUT allocations: N uses 4 of ROOT'),
    ('PUT allocations: D uses 4 of LEAF', 'DELETE provider: LEAF'),
    ('PUT inventories: LEAF has 3 VCPU and gold', 'PUT allocations: D uses 4 of LEAF'),
    ('PUT inventories: LEAF has 3 VCPU and gold', 'DELETE provider: LEAF'),
    ('PUT provider traits: LEAF has blue', 'PUT provider traits: LEAF has red and new'),
    ('POST provider: fresh below LEAF', 'DELETE provider: LEAF'),
    ('POST provider: fresh below LEAF', 'PUT provider: LEAF moves below OTHER'),
    ('POST provider: fresh below LEAF', 'PUT provider: OTHER is named fresh'),
)
MOVES = ('PUT provider: LEAF moves below CHILD', 'PUT provider: CHILD moves below LEAF')
DELETION = (
    *('DELETE allocations: C', 'DELETE provider: LEAF', 'DELETE provider: CHILD'),
    'DELETE provider: ROOT',
)
REMOVAL = (
    *('DELETE allocations: C', 'PUT provider: LEAF moves below OTHER', 'DELETE provider: CHILD'),
    'DELETE provider: ROOT',
)

T = TypeVar('T')


class CatalogueTest(base.BaseTestCase):
    def test_every_writing_route_is_among_the_requests(self):
        """A new route needs a request here."""
        tried = {request.route for request in writers.every(writers.RECORDED)}
        self.assertEqual(writers.writing_routes(), tried)

    def test_names_are_unique(self):
        """A report names requests, and outcomes are kept by request."""
        for start in (writers.RECORDED, writers.UNRECORDED):
            names = [request.name for request in writers.every(start)]
            self.assertEqual(sorted(set(names)), sorted(names))

    def test_start_state_is_about_every_table(self):
        """A start state replaces all rows of the database."""
        tables = {table.name for table in models.metadata.sorted_tables}
        self.assertEqual(tables, writers.RECORDED.rows().keys())

    def test_part_reaches_every_request(self):
        requests = writers.every(writers.RECORDED)
        pairs = list(itertools.product(requests, requests))[::PART]
        self.assertEqual(set(requests), {paused for paused, _ in pairs})
        self.assertEqual(set(requests), {other for _, other in pairs})


@where.not_on('sqlite', reason='On SQLite a writer has the lock from its first statement.')
class WithScheduler(testcase.RaceTestCase):
    """Gives each test a scheduler."""

    def setUp(self):
        super().setUp()
        # Formatting the records of so many requests takes a quarter of the time.
        for name in ('', 'placement', 'placement.changes', 'placement.claims'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(logging.WARNING)
        context = schedules.Scheduler(db_api.get_placement_engine(), self.send_request).opened()
        self.scheduler = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def send_request(self, request: Request) -> testcase.Response:
        return self.send(request.method, request.path, request.body, request.version)

    def examine(self, least: int, tried: Iterable[Schedule], waits: bool = True) -> None:
        """Run schedules: at least `least` of them, and no violation.

        :param waits: whether some of the other requests must wait for a lock
        """
        report = self.scheduler.examine(tried)
        if where.is_night():
            print(f'{self.id()}: {report}', file=sys.stderr)
        if report.violations:
            self.fail(str(report))
        self.assertGreaterEqual(report.tried, least)
        if waits:
            self.assertGreater(report.waited, 0)

    def at_each_statement(
        self,
        start: Start,
        combined: Iterable[tuple[Request, Any]],
        attempt: int = 1,
        elsewhere: bool = False,
    ) -> Iterator[Schedule]:
        """Yield the schedules of pairs."""
        for paused, other in combined:
            others = other if isinstance(other, tuple) else (other,)
            yield from self.scheduler.schedules(start, paused, others, elsewhere, attempt)

    def named(self, *names: str) -> tuple[Request, ...]:
        """Return the requests with these names."""
        return tuple(self.requests[name] for name in names)

    @property
    def requests(self) -> dict[str, Request]:
        """The writing requests by name."""
        return {request.name: request for request in writers.every(writers.RECORDED)}


class SchedulesTest(WithScheduler):
    def test_pairs(self):
        """Each request, paused after each of its statements, beside each request."""
        requests = writers.every(writers.RECORDED)
        pairs = selected(itertools.product(requests, requests))
        self.examine(300, self.at_each_statement(writers.RECORDED, pairs))

    def test_pairs_with_a_missing_consumer_row(self):
        """All pairs of which one writes a consumer that has allocations and no consumers row."""
        requests = writers.every(writers.UNRECORDED)
        pairs = selected(
            (paused, other)
            for paused, other in itertools.product(requests, requests)
            if writers.C in paused.consumers | other.consumers
        )
        self.examine(100, self.at_each_statement(writers.UNRECORDED, pairs))

    def test_consumer_is_created_while_it_is_emptied(self):
        """A consumer without allocations has no row that could be locked."""
        claims = writers.claims(writers.RECORDED)
        emptied = [claim for claim in claims if ': N is emptied' in claim.name]
        created = [claim for claim in claims if writers.N in claim.consumers]
        pairs = [*itertools.product(emptied, created), *itertools.product(created, emptied)]
        self.examine(170, self.at_each_statement(writers.RECORDED, pairs))

    def test_named_pairs(self):
        """Pairs for which each kind of guard was written; the night runs all pairs."""
        for names in NAMED:
            with self.subTest(names):
                tried = self.at_each_statement(writers.RECORDED, [self.named(*names)])
                self.examine(1, tried, waits=False)

    def test_a_provider_moves_while_a_request_repeats_its_parent(self):
        body = {'name': 'fresh', 'parent_provider_uuid': writers.ROOT}
        rename = Request('PUT provider: rename', f'/resource_providers/{writers.LEAF}', body)
        pair = rename, self.named(NAMED[-2][1])
        self.examine(1, self.at_each_statement(writers.RECORDED, [pair]))

    def test_a_class_is_replaced_while_its_first_inventory_is_added(self):
        """The new class has the id of the deleted class."""
        body = testcase.inventories_of({'CUSTOM_SILVER': 4}, 2)
        path = f'/resource_providers/{writers.LEAF}/inventories'
        others = self.named(
            'DELETE inventories: silver of OTHER', 'DELETE class: silver', 'POST class: new'
        )
        pair = Request('PUT inventories: LEAF has silver', path, body), others
        self.examine(1, self.at_each_statement(writers.RECORDED, [pair]), waits=False)

    def test_moves_below_a_root_without_root(self):
        """The root is locked although its own root is NULL: together the moves make a loop."""
        pairs = itertools.permutations(self.named(*MOVES))
        self.examine(2, self.at_each_statement(writers.ROOTLESS, pairs))

    def test_reads(self):
        """A tree is deleted, or moved in part, between the statements of a read."""
        for names in (DELETION, REMOVAL):
            combined = [(read, self.named(*names)) for read in writers.reads()]
            self.examine(20, self.at_each_statement(writers.RECORDED, combined), waits=False)

    def test_aggregates_change_without_an_increment(self):
        """Before microversion 1.19; the generation does not show that the aggregates changed."""
        requests = [one for name, one in self.requests.items() if 'aggregates 1.1: LEAF' in name]
        requests += self.named('PUT aggregates: LEAF in new and old')
        pairs = itertools.permutations(requests, 2)
        self.examine(10, self.at_each_statement(writers.RECORDED, pairs))

    def test_allocations_are_deleted_while_they_are_replaced(self):
        """They are there in both orders, so the response is never 404 Not Found."""
        paused = writers.put('C uses 10 of ROOT', writers.C, {writers.ROOT: {'VCPU': 10}}, None)
        pair = paused, writers.release('C', writers.C)
        self.examine(5, self.at_each_statement(writers.UNRECORDED, [pair]))

    def test_allocations_are_deleted_and_their_share_is_claimed(self):
        """While a request that writes the same consumer is paused, with and without its row."""
        others = (
            writers.release('C', writers.C),
            writers.put('D uses 8 of ROOT', writers.D, {writers.ROOT: {'VCPU': 8}}, None),
        )
        for start in (writers.NEARLY_FULL, writers.NEARLY_FULL_UNRECORDED):
            paused = [one for one in writers.claims(start) if writers.C in one.consumers]
            pairs = [(one, others) for one in paused]
            self.examine(60, self.at_each_statement(start, pairs))

    def test_generation_that_only_the_other_request_reaches(self):
        """The first statements of a request need not lock a provider with another generation."""
        others = [one for name, one in self.requests.items() if 'LEAF' in name]
        pairs = itertools.product(writers.ahead(), others)
        # InnoDB keeps the lock of a row with another generation, and PostgreSQL does not.
        self.examine(100, self.at_each_statement(writers.RECORDED, pairs), waits=False)

    def test_retries(self):
        """Each request is paused in its second attempt, because the first COMMIT failed."""
        requests = writers.every(writers.RECORDED)
        pairs = selected(itertools.product(requests, requests), SMALL_PART)
        self.examine(100, self.at_each_statement(writers.RECORDED, pairs, attempt=2))

    def test_second_process(self):
        """Claims of two processes."""
        claims = writers.claims(writers.RECORDED)
        pairs = selected(itertools.product(claims, claims), LARGE_PART)
        self.examine(100, self.at_each_statement(writers.RECORDED, pairs, elsewhere=True))

    def test_searches(self):
        """A search is paused while another request writes."""
        searches, requests = writers.searches(), writers.every(writers.RECORDED)
        combined = selected(itertools.product(searches, requests), LARGE_PART)
        self.examine(50, self.at_each_statement(writers.RECORDED, combined), waits=False)


class SchedulerTest(WithScheduler):
    """An over-allocation is found."""

    # Of two new consumers MariaDB may let one wait for the index record of the other. If a claim
    # has only one provider, the increment is the lock.
    paused = writers.put('C', writers.C, {writers.ROOT: {'VCPU': 10}, writers.LEAF: {'VCPU': 1}}, 1)
    other = writers.put(
        'N', writers.N, {writers.ROOT: {'VCPU': 4}, writers.OTHER: {'VCPU': 1}}, None
    )

    def test_claims_without_locks_and_generations_are_found(self):
        """Both guards have to be removed: each is enough on one server."""
        pair = [(self.paused, self.other)]
        self.examine(1, self.at_each_statement(writers.RECORDED, pair))
        self.without_provider_locks()
        self.examine(1, self.at_each_statement(writers.RECORDED, pair), waits=False)
        with mock.patch.object(generation, 'increment_providers', do_not_increment):
            report = self.scheduler.examine(self.at_each_statement(writers.RECORDED, pair))
        used = {
            sum(row[-1] for row in found.outcome.state['allocations'] if writers.ROOT in row)
            for found in report.violations
            if found.outcome.problems
        }
        self.assertEqual({14}, used, str(report))

    def without_provider_locks(self) -> None:
        def unlocked(conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> Any:
            if 'FROM resource_providers' in statement:
                statement = statement.replace('FOR UPDATE', '')
            return statement, parameters

        engine = db_api.get_placement_engine()
        event.listen(engine, 'before_cursor_execute', unlocked, retval=True)
        self.addCleanup(event.remove, engine, 'before_cursor_execute', unlocked)


def do_not_increment(conn: sa.Connection, *_: Any) -> None:
    """Execute a statement in place of the increments, without a lock."""
    conn.execute(sa.select(sa.literal(1)))


def selected(combined: Iterable[T], part: int = PART) -> Iterator[T]:
    """The combinations of this run: all, or one of so many."""
    return itertools.islice(combined, 0, None, 1 if is_complete() else part)


def is_complete() -> bool:
    """Whether all schedules run: not where MySQL or a second driver repeats those of MariaDB."""
    driver = servers.admin_url().get_driver_name()
    return where.is_night() and servers.engine() != 'mysql' and driver != 'mysqldb'
