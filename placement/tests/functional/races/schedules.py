"""Schedules: one request is paused after a chosen statement while others run.

A *schedule* is a start state, a request A, the number of a statement of A, and other requests.
`Scheduler.run` runs it on a database server:

1. The start state is written.
2. A runs in a thread of its own and is paused after that statement. If the statement is one of the
   second attempt, the COMMIT of the first attempt fails.
3. The other requests run, one after the other, until they are finished or until one of them waits
   for a lock. The server says whether it waits; no time limit decides it.
4. A continues to its end, then the others do. A transaction that A repeats is not paused again.

The others run in the process of A or in a second one.

`Scheduler.examine` compares the outcome with the serial orders: A before, between and after the
others. Every response, and the state that clients can see, must be those of one of these orders.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
import contextlib
from dataclasses import dataclass, field
import logging
import threading
import time
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import event

from placement import exception
from placement.db import engine as db_engine
from placement.tests.functional.races import audit, processes, servers, testcase
from placement.tests.functional.races.writers import Request, Start
from placement.tests.waiting import LONGEST

# A statement that takes longer than this is looked up among those that wait for a lock.
_POLL = 0.002

Send = Callable[[Request], testcase.Response]


@dataclass(frozen=True, slots=True)
class Schedule:
    """One request, paused after its statement number `boundary`, and those that run meanwhile.

    :param elsewhere: whether the others run in a second process
    :param attempt: the attempt whose statement it is; earlier attempts fail
    """

    start: Start
    paused: Request
    boundary: int
    others: tuple[Request, ...]
    elsewhere: bool = False
    attempt: int = 1

    def __str__(self) -> str:
        others = ', then '.join(f'[{other.name}]' for other in self.others)
        return (
            f'{self.start.name}: [{self.paused.name}], paused after statement {self.boundary} of '
            f'attempt {self.attempt}, meanwhile {others}{" elsewhere" if self.elsewhere else ""}'
        )


class Outcome(NamedTuple):
    """The responses, that of the paused request first, and the state that they leave.

    :ivar responses: the status and the body of each, without what differs from run to run
    :ivar problems: rules of the data that the state breaks
    """

    responses: tuple[tuple[int, Any], ...]
    state: Mapping[str, Any]
    problems: frozenset[str]


class Run(NamedTuple):
    """A schedule that was run.

    :ivar statement: the statement after which the request was paused
    :ivar has_waited: the other requests waited for a lock of the paused one
    :ivar reasons: why the outcome is not allowed
    """

    schedule: Schedule
    outcome: Outcome
    statement: str
    has_waited: bool
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return '\n    '.join([str(self.schedule), ' '.join(self.statement.split()), *self.reasons])


@dataclass(slots=True)
class Report:
    """How many schedules were tried, in how many of them a request waited, and what was wrong."""

    tried: int = 0
    waited: int = 0
    violations: list[Run] = field(default_factory=list)

    def __str__(self) -> str:
        head = (
            f'{self.tried} schedules, {self.waited} of them with a request that waited for a lock'
        )
        return '\n'.join([head, *map(str, self.violations)])


@dataclass(slots=True)
class _Client:
    """A thread that sends requests, as the listeners of the engine see it."""

    boundary: int = 0  # 0: it is not paused
    attempt: int = 1  # earlier attempts fail, and only this one is paused
    attempts: int = 1  # how many have begun
    statements: list[str] = field(default_factory=list)  # of the last attempt
    paused_after: str | None = None
    session: int = 0  # the number of the server for the connection in use
    sent: float | None = None  # when the statement was sent that has not returned
    has_stopped: threading.Event = field(default_factory=threading.Event)  # paused or finished
    may_continue: threading.Event = field(default_factory=threading.Event)


class Scheduler:
    """Runs schedules on the database of `engine`.

    :param engine: the engine of the service
    :param send: sends a request to the service
    """

    def __init__(self, engine: sa.Engine, send: Send) -> None:
        self._engine = engine
        self._send = send
        self._server = servers.of(engine)
        self._clients: dict[int, _Client] = {}
        self._scripts: dict[Start, str] = {}
        self._serial: dict[tuple[Start, tuple[Request, ...]], Outcome] = {}
        self._lengths: dict[Schedule, int] = {}
        self._second: processes.SecondProcess | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator['Scheduler']:
        """Listen to the statements of the service for the duration of the context."""
        pools = db_engine.get_pools()
        listeners = [
            (engine, name, listener)
            for engine in (pools.reader, pools.writer)
            for name, listener in (
                ('connect', self._server.set_up),
                ('before_cursor_execute', self._note_sent),
                ('after_cursor_execute', self._note_returned),
                ('commit', self._note_commit),
            )
        ]
        for listener in listeners:
            event.listen(*listener)
        pools.pool.dispose()  # so that all connections are set up
        with (
            futures.ThreadPoolExecutor(2) as self._pool,
            self._server.connected(),
            _retries_reported(self._note_retry),
        ):
            # Every run reads all rows, and needs only VCPU of the standard rows.
            self._server.execute('DELETE FROM traits; DELETE FROM resource_classes WHERE id <> 0')
            try:
                yield self
            finally:
                if self._second is not None:
                    self._second.close()
                for listener in listeners:
                    event.remove(*listener)
        pools.pool.dispose()

    def schedules(
        self,
        start: Start,
        paused: Request,
        others: tuple[Request, ...],
        elsewhere: bool = False,
        attempt: int = 1,
    ) -> Iterator[Schedule]:
        """The schedules of these requests: one for each statement of the paused request."""
        without_others = Schedule(start, paused, 0, (), attempt=attempt)
        for number in range(1, self._length(without_others) + 1):
            yield Schedule(start, paused, number, others, elsewhere, attempt)

    def examine(self, schedules: Iterable[Schedule]) -> Report:
        """Run schedules and compare their outcomes with those of the serial orders."""
        report = Report()
        for schedule in schedules:
            run = self.run(schedule)
            report.tried += 1
            report.waited += run.has_waited
            if reasons := tuple(self._reasons(schedule, run.outcome)):
                report.violations.append(run._replace(reasons=reasons))
        return report

    def run(self, schedule: Schedule) -> Run:
        """Run a schedule.

        :raises AssertionError: the paused request has fewer statements, or a request does not end
        """
        if schedule.elsewhere and self._second is None:
            self._second = processes.SecondProcess(self._engine.url)
        self._reset(schedule.start)
        paused, other = _Client(schedule.boundary, schedule.attempt), _Client()
        first = self._pool.submit(self._send_all, paused, [schedule.paused])
        try:
            paused.has_stopped.wait(LONGEST)
            if paused.paused_after is None:
                raise AssertionError(f'{schedule}: there is no such statement')
            send = self._send_all_elsewhere if schedule.elsewhere else self._send_all
            second = self._pool.submit(send, other, schedule.others)
            has_waited = self._wait(schedule, other)
        finally:
            paused.may_continue.set()
        responses = first.result(LONGEST) + second.result(LONGEST)
        outcome = self._outcome(schedule.start, responses)
        return Run(schedule, outcome, paused.paused_after, has_waited)

    def _wait(self, schedule: Schedule, other: _Client) -> bool:
        """Wait until the other requests are finished (False) or wait for a lock (True)."""
        deadline = time.monotonic() + LONGEST
        while not other.has_stopped.wait(_POLL):
            if self._waits_for_lock(schedule, other):
                return True
            if time.monotonic() > deadline:
                raise AssertionError(f'{schedule}: the other requests neither end nor wait')
        return False

    def serial(self, start: Start, requests: tuple[Request, ...]) -> Outcome:
        """The outcome of requests that are sent one after the other."""
        key = start, requests
        if key not in self._serial:
            self._reset(start)
            self._serial[key] = self._outcome(start, [self._send(request) for request in requests])
        return self._serial[key]

    def _length(self, schedule: Schedule) -> int:
        """The number of statements of a request that runs alone; 0 if there is no such attempt."""
        if schedule not in self._lengths:
            self._reset(schedule.start)
            client = _Client(attempt=schedule.attempt)
            self._pool.submit(self._send_all, client, [schedule.paused]).result(LONGEST)
            reached = client.attempts == client.attempt
            self._lengths[schedule] = len(client.statements) if reached else 0
        return self._lengths[schedule]

    def _send_all(self, client: _Client, requests: Sequence[Request]) -> list[testcase.Response]:
        self._clients[threading.get_ident()] = client
        try:
            return [self._send(request) for request in requests]
        finally:
            del self._clients[threading.get_ident()]
            client.has_stopped.set()

    def _send_all_elsewhere(
        self, client: _Client, requests: Sequence[Request]
    ) -> list[testcase.Response]:
        """Send requests to the second process."""
        assert self._second is not None
        try:
            return [self._second.send(request) for request in requests]
        finally:
            client.has_stopped.set()

    def _waits_for_lock(self, schedule: Schedule, client: _Client) -> bool:
        if schedule.elsewhere:
            assert self._second is not None
            return any(map(self._server.waits_for_lock, tuple(self._second.sessions)))
        sent = client.sent
        if sent is None or time.monotonic() - sent < _POLL:
            return False
        return self._server.waits_for_lock(client.session)

    # Listeners

    def _note_sent(self, conn: sa.Connection, *_: Any) -> None:
        client = self._clients.get(threading.get_ident())
        if client is not None:
            client.session = self._server.session(conn.connection.dbapi_connection)
            client.sent = time.monotonic()

    def _note_returned(self, conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        client = self._clients.get(threading.get_ident())
        if client is None:
            return
        client.sent = None
        client.statements.append(statement)
        if client.attempts == client.attempt and len(client.statements) == client.boundary:
            client.paused_after = statement
            client.has_stopped.set()
            client.may_continue.wait(LONGEST)

    def _note_commit(self, _conn: sa.Connection) -> None:
        client = self._clients.get(threading.get_ident())
        if client is not None and client.attempts < client.attempt:
            raise exception.ConcurrentChange('A row of this request')

    def _note_retry(self) -> None:
        client = self._clients.get(threading.get_ident())
        if client is not None:
            client.attempts += 1
            client.statements.clear()

    # States

    def _reset(self, start: Start) -> None:
        """Write a start state."""
        if start not in self._scripts:
            self._scripts[start] = _script(start, self._engine.dialect)
        self._server.execute(self._scripts[start])

    def _outcome(self, start: Start, responses: Sequence[testcase.Response]) -> Outcome:
        # Without a row of the consumer nothing locks its allocations. A claim that is rejected in
        # any order may name in the error an amount that includes earlier allocations.
        ignored = {'request_id'} if start.c_is_recorded else {'request_id', 'detail'}
        tables = self._server.read()
        return Outcome(
            tuple((response.status, _comparable(response.body, ignored)) for response in responses),
            audit.visible(tables),
            frozenset(audit.problems_of(tables)),
        )

    # Comparison

    def _reasons(self, schedule: Schedule, outcome: Outcome) -> Iterator[str]:
        for status, body in outcome.responses:
            if status >= 500:
                yield f'{status}: {body}'
        orders = list(self._orders(schedule))
        allowed = set()
        # A serial order may break a rule: by design, or because the start state does.
        requests = (schedule.paused, *schedule.others)
        if schedule.start.is_damaged or any(request.shrinks for request in requests):
            allowed = {problem for order in orders for problem in order.problems}
        yield from sorted(outcome.problems - allowed)
        if outcome not in orders:
            yield f'the outcome is that of no serial order: {_differences(outcome, orders[-1])}'
            for number, order in enumerate(orders):
                yield f'the paused request as number {number}: {_differences(order, outcome)}'

    def _orders(self, schedule: Schedule) -> Iterator[Outcome]:
        """The outcomes of the serial orders, with the response of the paused request first."""
        others = schedule.others
        for place in range(len(others) + 1):
            requests = (*others[:place], schedule.paused, *others[place:])
            found = self.serial(schedule.start, requests)
            responses = list(found.responses)
            responses.insert(0, responses.pop(place))
            yield found._replace(responses=tuple(responses))


@contextlib.contextmanager
def _retries_reported(report: Callable[[], None]) -> Iterator[None]:
    """Call a function, in the thread of the request, before each retry of a transaction."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith('Retrying the transaction'):
                report()

    logger, handler = logging.getLogger('placement.db.retry'), Handler()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def _script(start: Start, dialect: sa.Dialect) -> str:
    """The statements that replace all rows by those of a start state."""
    return ';\n'.join(
        str(statement.compile(dialect=dialect, compile_kwargs={'literal_binds': True}))
        for statement in start.statements()
    )


def _comparable(body: Any, ignored: Collection[str]) -> Any:
    """The body of a response, with sorted lists; of an error, without some keys."""
    if isinstance(body, dict) and 'errors' in body:
        return [
            {key: value for key, value in error.items() if key not in ignored}
            for error in body['errors']
        ]
    return testcase.in_order(body)


def _differences(outcome: Outcome, reference: Outcome) -> str:
    """The responses, and the rows that only this outcome has."""
    parts = [f'{status} {body or ""}'.strip() for status, body in outcome.responses]
    for name, rows in outcome.state.items():
        own = [row for row in rows if row not in reference.state[name]]
        if own:
            parts.append(f'{name} {own}')
    return '; '.join(parts)
