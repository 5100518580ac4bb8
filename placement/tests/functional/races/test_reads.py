"""A read of several statements, with a concurrent write between each two of them.

The response must be one that the service gives before the write, after it, or between two requests
of the write. The test decides when the write happens; no race decides it.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import functools
import json
import threading
from typing import Any
import uuid

from oslo_config import cfg
import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.candidates import forecasts, paging
from placement.db.sqlalchemy import models
from placement.tests import where
from placement.tests.functional.races import testcase

# The sum of the usages of `_hosts_of_two_pages`.
_PAGES_TOTAL = 10 * (paging.FIRST_PAGE + 4) + 1
# Names in paths and bodies stand for uuids, new ones for each run.
_NAMES = ('root', 'child', 'grandchild', 'other', 'consumer', 'aggregate')
_KEPT = (models.traits, models.resource_classes)

_SEARCH = '/allocation_candidates?resources=VGPU:1'
_READS = (
    '/resource_providers',
    '/resource_providers?uuid={child}',
    '/resource_providers?in_tree={grandchild}',
    '/resource_providers?resources=VGPU:1',
    '/resource_providers?required=CUSTOM_READ',
    '/resource_providers?member_of={aggregate}',
    '/resource_providers?required=CUSTOM_READ&member_of={aggregate}&resources=VGPU:1,PGPU:1'
    '&in_tree={root}',
    '/resource_providers?in_tree={root}&required=CUSTOM_UNKNOWN',
    '/resource_providers?required=CUSTOM_READ&member_of={aggregate}&resources=CUSTOM_UNKNOWN:1',
    '/resource_providers/{child}',
    '/resource_providers/{child}/inventories',
    '/resource_providers/{child}/usages',
    '/resource_providers/{child}/traits',
    '/resource_providers/{child}/aggregates',
    '/resource_providers/{child}/allocations',
    '/allocations/{consumer}',
    '/usages?project_id=project',
    _SEARCH,
    '/allocation_candidates?resources=VGPU:1&required=CUSTOM_READ&member_of={aggregate}',
)
_Write = tuple[str, str, Any]
_DELETE_TREE: tuple[_Write, ...] = (
    ('DELETE', '/allocations/{consumer}', None),
    ('DELETE', '/resource_providers/{grandchild}', None),
    ('DELETE', '/resource_providers/{child}', None),
    ('DELETE', '/resource_providers/{root}', None),
)
_MOVE_TREE: tuple[_Write, ...] = (
    (
        'PUT',
        '/resource_providers/{child}',
        {'name': '{child}', 'parent_provider_uuid': '{other}'},
    ),
    ('DELETE', '/resource_providers/{root}', None),
)


class _Reads:
    """The tests, for a test case that sends requests."""

    send: Callable[..., testcase.Response]
    send_ok: Callable[..., Any]
    config: cfg.ConfigOpts

    # Prepares what the process knows from earlier searches.
    prepare: Callable[[], None]

    def test_tree_is_deleted_during_a_read(self) -> None:
        self._check_all(_READS, _DELETE_TREE, forecasts.clear)

    def test_part_of_a_tree_is_moved_and_the_rest_deleted_during_a_read(self) -> None:
        self._check_all(_READS, _MOVE_TREE, forecasts.clear)

    def test_tree_is_deleted_during_a_search_with_a_wrong_forecast(self) -> None:
        self.send('GET', _SEARCH)
        self._check_all([_SEARCH], _DELETE_TREE, _forecast_one_tree)

    def test_consumer_moves_between_two_pages_of_a_search(self) -> None:
        """The usages in a response are those of one point in time, so their sum stays the same."""
        self.prepare = forecasts.clear
        hosts, consumer = self._hosts_of_two_pages()
        for options, least in ({}, 2), ({'randomize_allocation_candidates': True}, 1):
            for name, value in options.items():
                self.config.set_override(name, value, 'placement')
            self.assertEqual(_PAGES_TOTAL, self._sum_of_usages())
            with _counted() as statements:
                self._sum_of_usages()
            self.assertGreater(len(statements), least)
            for boundary in range(1, len(statements)):
                # The consumer moves forward, back, and forward again.
                for target in (hosts[-1], hosts[0], hosts[-1]):
                    write = functools.partial(self._move, consumer, target)
                    with _interrupted(boundary, write):
                        found = self._sum_of_usages()
                    self.assertEqual(_PAGES_TOTAL, found, f'{options}, after statement {boundary}')

    def _hosts_of_two_pages(self) -> tuple[list[str], str]:
        """Replace all rows; return hosts of more than one page, and a consumer of the first one."""
        _delete_rows()
        hosts = [str(uuid.uuid4()) for _ in range(paging.FIRST_PAGE + 4)]
        for host in hosts:
            self.send_ok('POST', '/resource_providers', {'uuid': host, 'name': host})
            body = testcase.inventories_of({'VCPU': 100}, 0)
            self.send_ok('PUT', f'/resource_providers/{host}/inventories', body)
        amounts = {host: {'resources': {'VCPU': 10}} for host in hosts}
        body = testcase.claim({}) | {'allocations': amounts}
        self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body)
        consumer = str(uuid.uuid4())
        self._move(consumer, hosts[0])
        return hosts, consumer

    def _move(self, consumer: str, host: str) -> None:
        """Let a consumer use one VCPU of a host, and nothing else."""
        self.send_ok('PUT', f'/allocations/{consumer}', testcase.claim_1_27({host: 1}), '1.27')

    def _sum_of_usages(self) -> int:
        self.prepare()
        document = self.send_ok('GET', '/allocation_candidates?resources=VCPU:1')
        summaries = document['provider_summaries'].values()
        self.assertEqual(paging.FIRST_PAGE + 4, len(summaries))
        return sum(summary['resources']['VCPU']['used'] for summary in summaries)

    def _check_all(
        self, reads: Sequence[str], writes: Sequence[_Write], prepare: Callable[[], None]
    ) -> None:
        self.prepare = prepare
        self.send_ok('PUT', '/traits/CUSTOM_READ')
        checked = 0
        for path in reads:
            allowed, statements = self._responses_over_time(path, writes)
            for boundary in range(1, statements):
                found = self._read_around(path, writes, boundary)
                self.assertIn(found, allowed, f'{path}, writes after statement {boundary}')
                checked += 1
        self.assertGreater(checked, 2 * len(reads) // 3)

    def _responses_over_time(self, path: str, writes: Sequence[_Write]) -> tuple[list[Any], int]:
        """What the service responds before the writes, between and after them.

        :returns: the responses, and how many statements the first one takes
        """
        world = self._new_world()
        with _counted() as statements:
            responses = [self._response(path, world)]
        for write in writes:
            self._write(write, world)
            responses.append(self._response(path, world))
        return responses, len(statements)

    def _read_around(self, path: str, writes: Sequence[_Write], boundary: int) -> Any:
        """The response to a read, with the writes after its statement of that number."""
        world = self._new_world()

        def write_all() -> None:
            for write in writes:
                self._write(write, world)

        with _interrupted(boundary, write_all):
            return self._response(path, world)

    def _new_world(self) -> dict[str, str]:
        """Replace all providers and consumers with a tree of three and another provider."""
        _delete_rows()
        world = {name: str(uuid.uuid4()) for name in _NAMES}
        for name, parent in (
            ('root', None),
            ('other', None),
            ('child', '{root}'),
            ('grandchild', '{child}'),
        ):
            body = {'uuid': f'{{{name}}}', 'name': f'{{{name}}}', 'parent_provider_uuid': parent}
            self._write(('POST', '/resource_providers', body), world)
        for name in ('child', 'grandchild'):
            self._furnish(name, world)
        body = testcase.claim({})
        body['allocations'] = {world['child']: {'resources': {'VGPU': 1}}}
        self._write(('PUT', '/allocations/{consumer}', body), world)
        return world

    def _furnish(self, name: str, world: dict[str, str]) -> None:
        path = f'/resource_providers/{{{name}}}'
        generation = 'resource_provider_generation'
        for kind, body in (
            ('inventories', testcase.inventories_of({'VGPU': 4, 'PGPU': 1}, 0)),
            ('traits', {'traits': ['CUSTOM_READ'], generation: 1}),
            ('aggregates', {'aggregates': ['{aggregate}'], generation: 2}),
        ):
            self._write(('PUT', f'{path}/{kind}', body), world)

    def _write(self, write: _Write, world: dict[str, str]) -> None:
        method, path, body = write
        self.send_ok(method, path.format(**world), body and json.loads(_named(body, world)))

    def _response(self, path: str, world: dict[str, str]) -> Any:
        """The body of a response, with names in place of uuids; of an error, the status."""
        self.prepare()
        response = self.send('GET', path.format(**world))
        if response.status != 200:
            return response.status
        text = json.dumps(response.body)
        for name, own in world.items():
            text = text.replace(own, name)
        return testcase.in_order(json.loads(text))


@where.not_on('sqlite', reason='All threads share the one connection of a database in memory.')
class ReadsTest(_Reads, testcase.RaceTestCase):
    pass


class ReadsOnSqliteFileTest(_Reads, testcase.SqliteFileTestCase):
    pass


def _forecast_one_tree() -> None:
    """Let searches try a page of one tree, and begin again because it is not enough."""
    for key, forecast in list(forecasts._forecasts.items()):
        page = paging.OnlyPage(1)
        forecasts.remember(key, dataclasses.replace(forecast, page=page, failures=0))


def _named(body: Any, world: dict[str, str]) -> str:
    text = json.dumps(body)
    for name, own in world.items():
        text = text.replace(f'{{{name}}}', own)
    return text


def _delete_rows() -> None:
    def work(conn: sa.Connection) -> None:
        links = {'root_provider_id': None, 'parent_provider_id': None}
        conn.execute(sa.update(models.resource_providers).values(links))
        for table in reversed(models.metadata.sorted_tables):
            if table not in _KEPT:
                conn.execute(sa.delete(table))

    db_api.write(work)


@contextlib.contextmanager
def _counted() -> Iterator[list[str]]:
    """Collect the statements that this thread executes."""
    reader = threading.get_ident()
    statements: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *others: Any) -> None:
        if threading.get_ident() == reader:
            statements.append(statement)

    engine = db_api.get_placement_engine()
    event.listen(engine, 'after_cursor_execute', note)
    try:
        yield statements
    finally:
        event.remove(engine, 'after_cursor_execute', note)


@contextlib.contextmanager
def _interrupted(boundary: int, write: Callable[[], None]) -> Iterator[None]:
    """Call `write` in another thread after this thread executed that many statements."""
    reader = threading.get_ident()
    executed = 0
    failures: list[BaseException] = []

    def run() -> None:
        try:
            write()
        except BaseException as exc:
            failures.append(exc)

    def interrupt(*arguments: Any) -> None:
        nonlocal executed
        if threading.get_ident() != reader:
            return
        executed += 1
        if executed == boundary:
            writer = threading.Thread(target=run)
            writer.start()
            writer.join()

    engine = db_api.get_placement_engine()
    event.listen(engine, 'after_cursor_execute', interrupt)
    try:
        yield
    finally:
        event.remove(engine, 'after_cursor_execute', interrupt)
    assert executed >= boundary, 'the read has fewer statements than the first time'
    assert not failures, failures
