"""A test case with a database cluster, three API processes, and HAProxy in front of them."""

import atexit
from collections.abc import Callable
import contextlib
import functools
import importlib
from pathlib import Path
import tempfile
from typing import Any

from oslotest import base
import sqlalchemy as sa

from placement.tests import servers
from placement.tests.functional.cluster import configuration, proxy
from placement.tests.functional.cluster.traffic import CAPACITY, Traffic, create_providers
from placement.tests.functional.faults import machines, storm
from placement.tests.functional.races import audit

# Statuses of requests during a fault: 502 and 504 are responses of HAProxy.
UNAVAILABLE = frozenset({502, 503, 504, storm.NO_RESPONSE})
# The API processes in the configuration of HAProxy.
NAMES = ('placement/api1', 'placement/api2', 'placement/api3')


@functools.cache
def _started(tool: str, start: str) -> list[Any]:
    """Start a cluster, which stops with this process, and create a database; return the nodes."""
    resources = contextlib.ExitStack()
    atexit.register(resources.close)
    nodes = resources.enter_context(getattr(importlib.import_module(tool), start)())
    servers.create_database(sa.make_url(nodes[0].url), 'placement')
    return nodes


def free_port() -> int:
    """Return a free TCP port that no client receives while a test restarts its server."""
    return int(importlib.import_module('tools.nodes').free_ports(1)[0])


class DeploymentTestCase(base.BaseTestCase):
    """Starts three API processes behind HAProxy.

    :cvar cluster: the module of the tool that starts the cluster, and its function
    :cvar single_writer: whether all processes use one node through another HAProxy; otherwise, each
        process uses its own node
    :cvar waiting: the statement with which a session waits for the changes of the other nodes
    """

    cluster: tuple[str, str]
    single_writer = False
    waiting: str
    resources: contextlib.ExitStack
    logs: Path
    nodes: list[Any]
    workers: list[machines.Worker]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.resources = contextlib.ExitStack()
        cls.addClassCleanup(cls.resources.close)
        cls.logs = Path(
            cls.resources.enter_context(tempfile.TemporaryDirectory(prefix='placement-api-'))
        )
        cls.nodes = cls.started_nodes()
        ports = [node.port for node in cls.nodes]
        if cls.single_writer:
            ports = [cls._start_database_proxy()] * len(ports)
        cls.workers = [
            cls.start_worker(cls.database(port), **cls.settings_of(number))
            for number, port in enumerate(ports)
        ]
        cls.port = free_port()
        text = configuration.api(cls.port, [worker.port for worker in cls.workers])
        cls.proxy = cls.start_proxy(text)

    @classmethod
    def started_nodes(cls) -> list[Any]:
        """Return the running nodes of the cluster."""
        return _started(*cls.cluster)

    @classmethod
    def is_usable(cls, node: Any) -> bool:
        """Whether the proxy of a cluster with a single writer may use a node."""
        raise NotImplementedError

    @classmethod
    def database_configuration(cls, port: int, checks: list[int]) -> str:
        """Return the configuration of this proxy.

        :param port: the port for Placement
        :param checks: for each node, the port that responds to the health checks
        """
        return configuration.database(port, [node.port for node in cls.nodes], checks)

    @classmethod
    def _start_database_proxy(cls) -> int:
        checks = [proxy.NodeCheck(functools.partial(cls.is_usable, node)) for node in cls.nodes]
        for check in checks:
            cls.resources.callback(check.remove)
        port = free_port()
        text = cls.database_configuration(port, [check.port for check in checks])
        cls.database_proxy = cls.start_proxy(text)
        return port

    @classmethod
    def settings_of(cls, number: int) -> dict[str, str]:
        """Return additional environment variables of an API process."""
        return {}

    def setUp(self) -> None:
        super().setUp()
        self.providers = create_providers(self.engine())
        self.wait_until_back()
        self.addCleanup(self.heal)

    @classmethod
    def database(cls, port: int) -> str:
        """Return the URL of Placement's database at a port of a node or of a proxy."""
        url = sa.make_url(cls.nodes[0].url).set(port=port, database='placement')
        return url.render_as_string(hide_password=False)

    @classmethod
    def engine(cls, node: int = 0) -> sa.Engine:
        """Return an engine for the database at a node, that waits for the other nodes."""
        return sa.create_engine(
            cls.database(cls.nodes[node].port),
            poolclass=sa.NullPool,
            connect_args={'init_command': cls.waiting},
        )

    @classmethod
    def start_worker(cls, url: str, **settings: str) -> machines.Worker:
        """Start an API process that uses a database URL, until the end of the class.

        :param settings: further environment variables
        """
        port = free_port()
        worker = machines.Worker(
            url,
            log=cls.logs / str(port),
            port=port,
            settings={
                **settings,
                'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
                'OS_PLACEMENT_DATABASE__RETRY_INTERVAL': '1',
                'OS_PLACEMENT_DATABASE__MAX_RETRIES': '60',
            },
        )
        cls.resources.callback(worker.remove)
        return worker

    @classmethod
    def start_proxy(cls, text: str) -> proxy.Proxy:
        """Start HAProxy with a configuration, until the end of the class."""
        started = proxy.Proxy(text)
        cls.resources.callback(started.remove)
        return started

    def heal(self) -> None:
        """Undo what a test did to nodes, and wait until all of them have the same data."""
        raise NotImplementedError

    def wait_until_complete(self) -> None:
        """Wait until all nodes are part of the cluster and have all data."""
        raise NotImplementedError

    def traffic(self) -> Traffic:
        """Return clients of new providers."""
        self.providers = create_providers(self.engine())
        return Traffic(self.port, self.providers)

    def health(self, number: int) -> int:
        """Return the status of the health check of an API process."""
        return storm.send(self.workers[number].port, 'GET', '/healthcheck')

    def wait_until_gone(self, number: int) -> None:
        """Wait until an API process has left the pool of HAProxy."""
        self.proxy.wait_until(NAMES[number], up=False)

    def wait_until_back(self, *numbers: int) -> None:
        """Wait until API processes are in the pool of HAProxy."""
        for number in numbers or range(len(self.workers)):
            self.proxy.wait_until(NAMES[number], up=True)

    def check_concurrent_claims(self, more: int = 300) -> None:
        """Check that all claims that fit are granted, although all nodes change the same rows.

        Other processes than those that granted the claims read them.
        """
        with self.traffic().running() as traffic:
            traffic.wait_for(204, more)
        self.check(traffic, failed=0)

    def withstand(
        self,
        fail: Callable[[], Any],
        notice: Callable[[], Any],
        repair: Callable[[], Any] = lambda: None,
    ) -> tuple[Traffic, int]:
        """Let a node fail under load; repair it while other nodes are in use.

        The API processes continue and are not restarted.

        :param notice: waits until no request uses the node
        :param repair: also waits until the node is in use again
        :returns: the traffic, and the number of requests that failed before `notice` returned
        """
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            fail()
            notice()
            traffic.wait_for(204, 60)
            failed = traffic.failed
            traffic.wait_for(204, 60)
            self.assertEqual(failed, traffic.failed, 'requests fail although another node is used')
            repair()
            traffic.wait_for(204, 60)
        return traffic, failed

    def check(self, traffic: Traffic, failed: int | None = None) -> None:
        """Compare all responses with the data of each node, and the number of failed requests."""
        self.wait_until_complete()
        if failed is not None:
            self.assertEqual(failed, traffic.failed, traffic.unexpected)
        self.assertLessEqual(set(traffic.statuses), {204, 409, *UNAVAILABLE}, traffic.unexpected)
        self.assertLessEqual(set(traffic.reads), {200, *UNAVAILABLE})
        self.assertEqual([], traffic.stale)
        tables = []
        for number in range(len(self.nodes)):
            engine = self.engine(number)
            self.assertEqual((set(), set()), traffic.compare(engine))
            self.assertEqual([], audit.problems(engine))
            with engine.connect() as conn:
                tables.append(audit.read(conn))
        self.assertEqual(tables[0], tables[1])
        self.assertEqual(tables[0], tables[2])
        self.assertEqual(set(), traffic.full - full_providers(tables[0]))


def full_providers(tables: dict[str, Any]) -> set[str]:
    """Return the UUIDs of the providers without free capacity."""
    used: dict[int, int] = {}
    for row in tables['allocations']:
        used[row.resource_provider_id] = used.get(row.resource_provider_id, 0) + row.used
    uuids = {row.id: row.uuid for row in tables['resource_providers']}
    return {uuids[number] for number, amount in used.items() if amount == CAPACITY}
