"""The command placement-manage exporter, in a process of its own."""

from concurrent import futures
import contextlib
import functools
import json
import os
from pathlib import Path
import re
import signal
import socket
import subprocess
import time
from typing import Any
import uuid

import ddt
import fixtures
import requests
import sqlalchemy as sa

from placement import db_api
from placement.admin import serving
from placement.cmd import program
from placement.db.sqlalchemy import migration, models
from placement.tests import prometheus_text, where, worlds
from placement.tests.functional import base as functional_base
from placement.tests.functional import in_process, programs
from placement.tests.functional.cmd import base
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands, prometheus_pages
from placement.tests.waiting import LONGEST, wait_until
from placement.tests.worlds import rows

SMALL = 'resources=VCPU:2,MEMORY_MB:4096&root_required=!COMPUTE_STATUS_DISABLED'
EMPTY = {
    ('placement_up',): 1.0,
    ('placement_providers',): 0.0,
    ('placement_consumers',): 0.0,
    ('placement_allocations',): 0.0,
}
DOWN = {('placement_up',): 0.0}


class Serving:
    """A process that serves metrics on a free port.

    :ivar url: the URL of the metrics
    """

    def __init__(self, database: str, *arguments: str, **settings: str) -> None:
        self._process = programs.shared().start(
            (*programs.MANAGE, 'exporter', '--listen', '127.0.0.1:0', *arguments),
            {**os.environ, 'OS_PLACEMENT_DATABASE__CONNECTION': database, **settings},
            stdout=programs.PIPE,
            stderr=programs.PIPE,
        )
        line = self._process.stderr.readline().decode()
        match = re.fullmatch(r'Serving metrics at (http://127\.0\.0\.1:\d+/metrics)\n', line)
        if match is None:
            raise AssertionError(line + self._process.stderr.read().decode())
        self.url = match[1]

    @property
    def port(self) -> int:
        return int(self.url.split(':')[2].split('/')[0])

    def scrape(self, **headers: str) -> prometheus_text.Samples:
        response = requests.get(self.url, headers=headers, timeout=LONGEST)
        if response.status_code != 200:
            raise AssertionError(response.text)
        return prometheus_text.parse(response.text)

    def threads(self) -> int:
        """Return the number of threads of the process."""
        return len(list(Path(f'/proc/{self._process.pid}/task').iterdir()))

    def stop(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal; return the exit status, and the further output."""
        self._process.send_signal(number)
        status = self._process.wait(LONGEST)
        with self._process.stdout as stdout, self._process.stderr as stderr:
            return status, stdout.read().decode(), stderr.read().decode()

    def remove(self) -> None:
        """Kill the process if it runs."""
        if self._process.poll() is None:
            self._process.kill()
            self.stop(signal.SIGKILL)


class TestCase(base.TestCase):
    module = 'placement.cmd.manage'

    def once(self) -> prometheus_text.Samples:
        done = self.run_program('exporter', '--once')
        self.assertEqual((0, ''), (done.status, done.stderr))
        return prometheus_text.parse(done.stdout)

    def serve(self, *arguments: str, **settings: str) -> Serving:
        process = Serving(self.database.url, *arguments, **settings)
        self.addCleanup(process.remove)
        return process

    def insert_consumer(self) -> None:
        """Insert a consumer with an allocation."""
        with self.engine.begin() as conn:
            number = conn.scalar(sa.select(sa.func.count()).select_from(models.consumers))
            row = {'uuid': str(number), 'project_id': 1, 'user_id': 1, 'generation': 1}
            conn.execute(sa.insert(models.consumers).values(row))
            conn.execute(
                sa.insert(models.allocations).values(
                    resource_provider_id=1, consumer_id=str(number), resource_class_id=7, used=1
                )
            )

    def change_inventory(self, **values: int) -> None:
        with self.engine.begin() as conn:
            conn.execute(sa.update(models.inventories).values(max_unit=99, **values))

    def insert_inventory(self, number: int = 1) -> None:
        """Insert a provider with an inventory, the first one with its resource class."""
        with self.engine.begin() as conn:
            conn.execute(
                sa.insert(models.resource_providers).values(
                    id=number,
                    uuid='u' * number,
                    name='host' * number,
                    generation=1,
                    root_provider_id=number,
                )
            )
            if number == 1:
                conn.execute(sa.insert(models.resource_classes).values(id=7, name='NUMA_THREAD'))
            conn.execute(
                sa.insert(models.inventories).values(
                    resource_provider_id=number,
                    resource_class_id=7,
                    **dict.fromkeys(('total', 'reserved', 'min_unit', 'max_unit', 'step_size'), 1),
                    allocation_ratio=1.0,
                )
            )

    def assertFailed(self, done: programs.Result, pattern: str) -> None:
        """The command printed one sentence to the standard error, and nothing else."""
        self.assertEqual((2, ''), (done.status, done.stdout), done.stderr)
        self.assertRegex(done.stderr, f'^Error: {pattern}\n$')


# Each metric of the cloud below.
TEXT = """\
# HELP placement_up Whether the exporter could read the database of Placement.
# TYPE placement_up gauge
placement_up 1.0
# HELP placement_providers Resource providers.
# TYPE placement_providers gauge
placement_providers 2.0
# HELP placement_consumers Consumers that have allocations.
# TYPE placement_consumers gauge
placement_consumers 1.0
# HELP placement_allocations Allocations, each of one consumer, resource provider and resource class.
# TYPE placement_allocations gauge
placement_allocations 1.0
# HELP openstack_placement_resource_total Total amount of a resource class that a resource provider has.
# TYPE openstack_placement_resource_total gauge
openstack_placement_resource_total{hostname="host",resourcetype="VCPU"} 16.0
# HELP openstack_placement_resource_reserved Amount of a resource class that is reserved on a resource provider.
# TYPE openstack_placement_resource_reserved gauge
openstack_placement_resource_reserved{hostname="host",resourcetype="VCPU"} 1.0
# HELP openstack_placement_resource_allocation_ratio Allocation ratio of a resource class on a resource provider.
# TYPE openstack_placement_resource_allocation_ratio gauge
openstack_placement_resource_allocation_ratio{hostname="host",resourcetype="VCPU"} 1.5
# HELP openstack_placement_resource_usage Amount of a resource class that is allocated on a resource provider.
# TYPE openstack_placement_resource_usage gauge
openstack_placement_resource_usage{hostname="host",resourcetype="VCPU"} 7.0
# HELP openstack_placement_resource_generation Generation of the resource provider.
# TYPE openstack_placement_resource_generation gauge
openstack_placement_resource_generation{hostname="host",resourcetype="VCPU"} 0.0
# HELP placement_resource_capacity Capacity of a resource class on a resource provider: (total - reserved) * allocation_ratio, truncated to an integer.
# TYPE placement_resource_capacity gauge
placement_resource_capacity{hostname="host",resourcetype="VCPU"} 22.0
# HELP placement_provider_info A resource provider: its UUID, the name of its root provider, and whether the root is disabled.
# TYPE placement_provider_info gauge
placement_provider_info{disabled="true",hostname="child",root="host",uuid="%(child)s"} 1.0
placement_provider_info{disabled="true",hostname="host",root="host",uuid="%(host)s"} 1.0
# HELP placement_provider_aggregate An aggregate of a resource provider.
# TYPE placement_provider_aggregate gauge
placement_provider_aggregate{aggregate="%(A)s",hostname="host"} 1.0
# HELP placement_project_usage Amount of a resource class that the consumers of a project use.
# TYPE placement_project_usage gauge
placement_project_usage{project="shop",resourcetype="VCPU"} 7.0
# HELP placement_headroom Claims of a query that fit in addition to the present ones.
# TYPE placement_headroom gauge
placement_headroom{query="small"} 15.0
# HELP placement_trees_checked Provider trees with allocations that were checked for a drain.
# TYPE placement_trees_checked gauge
placement_trees_checked 1.0
# HELP placement_trees_drainable Provider trees with allocations whose consumers fit elsewhere.
# TYPE placement_trees_drainable gauge
placement_trees_drainable 0.0
"""  # noqa: E501
NAMES = {name: worlds.uuid_of(name) for name in ('host', 'child', 'A')}
OPTIONS = ('exporter', '--once', '--headroom', 'small=resources=VCPU:1', '--drain-interval', '600')
NOT_LISTENING = 'is not an address and a port to listen on'


@where.only_on('sqlite', reason='Damaged worlds execute the same statements.')
@ddt.ddt
class OnceTest(functional_base.TestCase, in_process.Commands):
    def setUp(self) -> None:
        super().setUp()
        drawing = 'host[V: total 16 reserved 1 allocation_ratio 1.5] {DISABLED} @A\n  child'
        consumer = worlds.Consumer('one', {'host': {'VCPU': 7}}, project='shop')
        rows.fill(db_api.get_placement_engine(), worlds.World.of(drawing).claimed(consumer))

    def test_the_text(self):
        text = TEXT % NAMES
        self.assertEqual(text, self.manage(0, *OPTIONS).stdout)
        optional = re.findall('# TYPE (.*) gauge', text)[1:]
        for name in optional:
            kept = [line for line in text.splitlines() if name not in re.split('[ {]', line)]
            without = self.manage(0, *OPTIONS, '--without', name).stdout
            self.assertEqual(kept, without.splitlines())
        text = self.manage(0, 'exporter', '--once').stdout
        self.assertNotIn('\nplacement_trees', text)
        page = prometheus_pages.part('exporter')
        declared = {'placement_up', *optional}
        self.assertEqual(declared, set(re.findall(r'^``([a-z_]+)`` ', page, re.MULTILINE)))
        used = ' '.join(
            [
                *prometheus_pages.blocks('exporter', 'promql'),
                (prometheus_pages.RULES / 'placement-capacity.yaml').read_text(),
                prometheus_pages.DASHBOARD.read_text(),
            ]
        )
        self.assertEqual(set(), set(re.findall(r'\b\w*placement_\w+', used)) - declared)

    def test_promtool_finds_only_the_name_that_openstack_exporter_uses(self):
        checked = subprocess.run(
            (commands.program('promtool'), 'check', 'metrics'),
            input=self.manage(0, *OPTIONS).stdout,
            capture_output=True,
            text=True,
        )
        self.assertEqual(
            'openstack_placement_resource_total non-counter metrics should not have "_total" '
            'suffix\n',
            checked.stdout + checked.stderr,
        )

    def test_an_empty_database(self):
        rows.fill(db_api.get_placement_engine(), worlds.World.of(''))
        text = self.manage(0, 'exporter', '--once').stdout
        self.assertEqual(EMPTY, prometheus_text.parse(text))
        self.assertEqual(TEXT.count('# TYPE '), text.count('# TYPE '))

    @ddt.data(
        *((NOT_LISTENING, '--listen', text) for text in ('', '9180', ':9180', '127.0.0.1')),
        *((NOT_LISTENING, '--listen', text) for text in ('127.0.0.1:', '127.0.0.1:http')),
        *((NOT_LISTENING, '--listen', text) for text in ('127.0.0.1:65536', '127.0.0.1:-1')),
        *((NOT_LISTENING, '--listen', text) for text in ('127.0.0.1:9180 ', '127.0.0.1:९')),
        *((NOT_LISTENING, '--listen', text) for text in ('::1:9180', '[]:9180', '[::1]')),
        ("--headroom needs NAME=QUERY, but is 'resources'.", '--headroom', 'resources'),
        ('VCPU', '--headroom', 'a=resources=VCPU'),
        ('No such resource class CUSTOM_A', '--once', '--headroom', 'a=resources=CUSTOM_A:1'),
        (
            "Two queries of --headroom have the name 'a'.",
            *('--headroom', 'a=resources=VCPU:1', '--headroom', 'a=resources=VCPU:2'),
        ),
        ('are required: nothing, placement_up.', '--without', 'placement_up, nothing'),
    )
    def test_refusals(self, example):
        sentence, *arguments = example
        self.assertRefused(sentence, 'exporter', *arguments)

    def test_usage_errors(self):
        for text, *arguments in (
            ('not allowed with argument', '--once', '--listen', '127.0.0.1:0'),
            ("--cache: '-1' is not a number from 0 to 999999999", '--cache=-1'),
            ("--headroom-interval: '1.5' is not a number", '--headroom-interval', '1.5'),
            ("--drain-interval: 'x' is not a number", '--drain-interval', 'x'),
        ):
            done = in_process.run('exporter', *arguments)
            self.assertEqual((2, ''), (done.status, done.stdout))
            self.assertIn(text, done.stderr)

    def test_an_address_in_use(self):
        with socket.create_server(('127.0.0.1', 0)) as other:
            address = f'127.0.0.1:{other.getsockname()[1]}'
            sentence = f'Cannot listen on {address}: Address already in use.'
            self.assertRefused(sentence, 'exporter', '--listen', address)

    def test_an_allocation_without_a_consumer(self):
        with db_api.get_placement_engine().begin() as conn:
            conn.execute(models.consumers.delete())
        self.assertRefused('--only orphan-allocation`.', *OPTIONS)


class ProgramTest(TestCase):
    def test_without_tables_and_without_the_database(self):
        done = self.run_program('exporter', '--once')
        self.assertFailed(done, 'The database .* lacks a table or a column: .* db sync`, .*')
        url = self.database.url
        if 'sqlite' in url:
            self.database.url = 'sqlite:////nonexistent/placement.db'
        else:
            self.database.url = re.sub(r':\d+/', f':{machines.free_port()}/', url)
        done = self.run_program('exporter', '--once')
        self.assertFailed(done, 'The database .*')
        self.assertNotIn(sa.make_url(url).password or 'no password', done.stderr)

    @where.only_on('sqlite', reason='The database does not matter.')
    def test_without_the_library(self):
        for library, *arguments in (
            ('prometheus_client',),
            ('prometheus_client', '--once'),
            ('waitress',),
        ):
            self.assertFailed(
                self.run_program('exporter', *arguments, missing=(library,)),
                f'The Python library {library} is not installed or is damaged. '
                r"Run `pip install 'openstack-placement\[(metrics|serve)\]'`.",
            )

    @where.only_on('sqlite', reason='The database does not matter.')
    def test_a_full_disk_and_a_closed_pipe(self):
        migration.upgrade('head')
        with Path('/dev/full').open('wb') as full:
            reader, closed = os.pipe()
            os.close(reader)
            no_space = 'Error: [Errno 28] No space left on device\n'
            for arguments, stdout, expected in (
                ('exporter --once', full, [(2, no_space)]),
                ('exporter --once', closed, [(program.CLOSED, '')]),
                # argparse ignores the error, if it occurs before the end of the process.
                ('--help', closed, [(program.CLOSED, ''), (0, '')]),
            ):
                process = self.start(*arguments.split(), interrupted=False, stdout=stdout)
                with process.stderr as stderr:
                    error = stderr.read().decode()
                self.assertIn((process.wait(), error), expected)
            os.close(closed)

    @where.only_on('sqlite', reason='The database does not matter.')
    def test_a_signal_stops_the_process(self):
        migration.upgrade('head')
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.serve()
            self.assertEqual(EMPTY, process.scrape())
            with socket.create_connection(('127.0.0.1', process.port)):
                status, stdout, stderr = process.stop(number)
            self.assertEqual((0, ''), (status, stdout))
            self.assertRegex(stderr, r'^\S+ \S+ \d+ INFO \S+ \[-\] The exporter stops\.\n$')


@where.only_on('sqlite', reason='The database does not matter.')
class DashboardTest(TestCase):
    """The dashboard and the rules, in a Prometheus that reads the metrics of the demo cloud."""

    def setUp(self):
        super().setUp()
        self.register_demo_cloud()
        exporter = self.serve('--headroom', f'small={SMALL}')
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        command = functools.partial(
            commands.prometheus,
            targets=[exporter.port],
            folder=folder,
            rules=[prometheus_pages.RULES / 'placement-capacity.yaml'],
        )
        monitor = machines.Worker('', command, log=folder / 'prometheus.log')
        self.addCleanup(monitor.stop)
        self.url = f'http://127.0.0.1:{monitor.port}/api/v1'

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        document = requests.get(f'{self.url}/{path}', parameters, timeout=LONGEST).json()
        self.assertEqual('success', document['status'], document)
        return document['data']

    def query(self, text: str) -> dict[str, float]:
        """The values of a query by the values of the labels."""
        return {
            ' '.join(one['metric'].values()): float(one['value'][1])
            for one in self.get('query', query=text)['result']
        }

    def test_the_dashboard_and_the_rules(self):
        wait_until(lambda: self.ready() and self.query('placement_headroom'))
        found = {
            title: [self.query(query) for query in queries]
            for title, queries in prometheus_pages.panels('VCPU').items()
        }
        self.assertEqual([], [title for title, results in found.items() if not all(results)])
        for title, expected in (
            ('Providers', {'': 36}),
            ('Disabled hosts', {'': 1}),
            ('Consumers', {'': 53}),
            ('Database', {'': 1}),
            ('Usage above the capacity', {'compute-07 VCPU': 16}),
        ):
            self.assertEqual([expected], found[title], title)
        self.assertEqual([{'': 720}, {'': 128}], found['Free: VCPU'])
        self.assertEqual(400 / 1216, found['Use of the capacity'][0]['VCPU'])
        self.assertEqual(1.25, found['Fullest providers: VCPU'][0]['compute-07'])
        self.assertEqual({'research', 'web-shop', 'tools'}, {*found['Largest projects: VCPU'][0]})
        done = self.run_program('headroom', SMALL, '--format', 'json')
        self.assertEqual([{'small': json.loads(done.stdout)[0]['fits']}], found['Headroom'])
        *queries, differences = prometheus_pages.blocks('exporter', 'promql')
        for query in queries:
            # A trend needs two samples.
            wait_until(lambda query=query: self.query(query), f'no result: {query}')
        self.assertEqual({}, self.query(differences))
        wait_until(lambda: 'unknown' not in {rule['health'] for rule in self.rules()})
        self.assertEqual({'ok'}, {rule['health'] for rule in self.rules()})
        wait_until(lambda: self.pending() == {'PlacementUsageAboveCapacity'})

    def ready(self) -> bool:
        return requests.get(f'{self.url}/query?query=1', timeout=LONGEST).ok

    def rules(self) -> list[dict[str, Any]]:
        (group,) = self.get('rules')['groups']
        return group['rules']

    def pending(self) -> set[str]:
        return {rule['name'] for rule in self.rules() if rule['state'] != 'inactive'}


@where.not_on('postgresql', reason='The tests of the functions run on each database.')
class ServeTest(TestCase):
    def setUp(self):
        super().setUp()
        migration.upgrade('head')

    def test_the_cache(self):
        cached, fresh = self.serve('--cache', '3600'), self.serve('--cache', '0')
        # Connections without a request need no thread.
        for _ in range(2 * serving.THREADS):
            idle = socket.create_connection(('127.0.0.1', cached.port))
            self.addCleanup(idle.close)
        for _ in range(2):
            self.assertEqual([EMPTY, EMPTY], [cached.scrape(), fresh.scrape()])
        self.insert_consumer()
        self.assertEqual(EMPTY, cached.scrape())
        self.assertEqual(1, fresh.scrape()['placement_consumers',])
        self.insert_consumer()
        self.assertEqual(2, fresh.scrape()['placement_consumers',])

    def test_the_headroom_is_computed_in_the_background(self):
        self.insert_inventory()
        self.change_inventory(total=7, reserved=0)
        options = ('--cache', '0', '--headroom-interval', '0', '--drain-interval', '0')
        process = self.serve(*options, '--headroom', 'one=resources=NUMA_THREAD:2')
        for expected, total in ((3, 7), (4, 9)):
            self.change_inventory(total=total)
            wait_until(
                lambda fits=expected: process.scrape().get(('placement_headroom', 'one')) == fits
            )
        self.insert_consumer()
        wait_until(lambda: process.scrape().get(('placement_trees_checked',)) == 1)

    def test_a_database_without_tables(self):
        """The metrics appear as soon as the tables exist."""
        with self.engine.begin() as conn:
            conn.exec_driver_sql('ALTER TABLE consumers RENAME TO hidden')
        process = self.serve('--cache', '3600')
        self.assertEqual([DOWN, DOWN], [process.scrape(), process.scrape()])
        with self.engine.begin() as conn:
            conn.exec_driver_sql('ALTER TABLE hidden RENAME TO consumers')
        self.assertEqual(EMPTY, process.scrape())
        _, _, log = process.stop(signal.SIGTERM)
        self.assertEqual(1, log.count('The database cannot be read: The database'), log)
        self.assertEqual(1, log.count('Run `placement-manage db sync`'), log)
        self.assertEqual(3, len(log.splitlines()), log)


@where.only_on('sqlite', reason='The database does not matter.')
class PageTest(base.TestCase):
    """The queries, the alert rules and the configuration of Prometheus in the guide."""

    def setUp(self):
        super().setUp()
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)

    def test_queries(self):
        queries = prometheus_pages.blocks('exporter', 'promql')
        self.assertLess(5, len(queries))
        rules = prometheus_pages.rules_of(queries)
        self.assertEqual('', prometheus_pages.problems('rules', rules, self.folder))

    def test_configuration_and_alert_rules(self):
        (configuration,) = prometheus_pages.blocks('exporter', 'yaml')
        self.assertEqual('', prometheus_pages.problems('config', configuration, self.folder))
        rules = (prometheus_pages.RULES / 'placement-capacity.yaml').read_text()
        self.assertLess(3, rules.count('alert:'))
        self.assertEqual('', prometheus_pages.problems('rules', rules, self.folder))


class PrivilegesTest(TestCase):
    def test_a_database_account_that_can_only_select_is_sufficient(self):
        engine = machines.engine_of_run()
        migration.upgrade('head')
        name, url = f'exporter_{uuid.uuid4().hex[:8]}', self.engine.url
        account, tables = (
            (f"'{name}'@'{url.host}'", f'{url.database}.*')
            if engine != 'postgresql'
            else (name, 'ALL TABLES IN SCHEMA public')
        )
        password = 'IDENTIFIED BY' if engine != 'postgresql' else 'PASSWORD'
        self.execute(f"CREATE USER {account} {password} 'secret'")
        self.addCleanup(self.execute, f'DROP USER {account}')
        self.execute(f'GRANT SELECT ON {tables} TO {account}')
        if engine == 'postgresql':
            self.addCleanup(self.execute, f'DROP OWNED BY {account}')
        restricted = url.set(username=name, password='secret')
        self.database.url = restricted.render_as_string(hide_password=False)
        self.assertEqual(EMPTY, self.once())

    def execute(self, statement: str) -> None:
        with self.engine.begin() as conn:
            conn.exec_driver_sql(statement)


class FaultsTest(TestCase):
    """The database server is stopped or hangs, and works again."""

    def setUp(self):
        self.server = machines.DatabaseServer()
        self.addCleanup(self.server.remove)
        super().setUp()
        self.database.url = self.server.create_database('placement')
        self.assertEqual(0, self.run_program('db', 'sync').status)

    def serve(self, *arguments: str, **settings: str) -> Serving:
        names = ('CONNECT', 'READ', 'WRITE')
        limits = {f'OS_PLACEMENT_DATABASE__{name}_TIMEOUT': '2' for name in names}
        return super().serve(*arguments, **limits, **settings)

    def test_the_server_is_restarted(self):
        process = self.serve('--cache', '0')
        self.assertEqual(EMPTY, process.scrape())
        self.server.kill()
        self.assertEqual([DOWN] * 3, [process.scrape() for _ in range(3)])
        self.assertFailed(
            self.run_program('exporter', '--once'), 'The database .* is not reachable: .*'
        )
        self.server.start()
        self.assertEqual(EMPTY, process.scrape())
        status, _, log = process.stop(signal.SIGTERM)
        self.assertEqual(0, status)
        self.assertEqual(3, len(log.splitlines()), log)

    def test_the_server_starts_later_than_the_exporter(self):
        self.server.kill()
        process = self.serve(OS_PLACEMENT_DATABASE__MAX_RETRIES='-1')
        self.assertEqual(DOWN, process.scrape())
        self.server.start()
        self.assertEqual(EMPTY, process.scrape())

    def test_the_server_hangs(self):
        """Many requests share one read, and no request waits longer than Prometheus."""
        process = self.serve('--cache', '0')
        self.assertEqual(EMPTY, process.scrape())
        before = process.threads()
        self.server.hang()
        most = before
        with contextlib.ExitStack() as stack:
            stack.callback(self.server.resume)
            clients = stack.enter_context(futures.ThreadPoolExecutor(8))
            for _ in range(5):
                header = {'X-Prometheus-Scrape-Timeout-Seconds': '0.5'}
                scrapes = [clients.submit(process.scrape, **header) for _ in range(8)]
                most = max(most, process.threads())
                self.assertEqual([DOWN] * 8, [scrape.result() for scrape in scrapes])
            # The server starts its threads before the first request. One more thread reads.
            self.assertLessEqual(most, before + 1)
            self.assertLessEqual(process.threads(), before + 1)
            # Without the header, a request waits for the time limit of the database connection.
            self.assertEqual(DOWN, process.scrape())
            self.server.resume()
        wait_until(lambda: process.scrape() == EMPTY)
        status, _, log = process.stop(signal.SIGTERM)
        self.assertEqual(0, status)
        self.assertEqual(3, len(log.splitlines()), log)


class SharedReadTest(TestCase):
    """The read waits for a lock, while many clients wait for the read."""

    def test_concurrent_requests_share_one_read(self):
        engine = machines.engine_of_run()
        migration.upgrade('head')
        process = self.serve('--cache', '0')
        with futures.ThreadPoolExecutor(8) as clients:
            with machines.other_connection(self.database.url) as conn:
                if engine != 'postgresql':
                    conn.exec_driver_sql('LOCK TABLES allocations WRITE')
                else:
                    conn.exec_driver_sql('LOCK TABLE allocations IN ACCESS EXCLUSIVE MODE')
                scrapes = [clients.submit(process.scrape) for _ in range(8)]
                wait_until(lambda: self.waiting_statements(conn))
                time.sleep(0.5)
                self.assertEqual(1, self.waiting_statements(conn))
                if engine != 'postgresql':
                    conn.exec_driver_sql('UNLOCK TABLES')
            self.assertEqual([EMPTY] * 8, [scrape.result() for scrape in scrapes])

    def waiting_statements(self, conn: sa.Connection) -> int:
        """Return the number of statements that wait for a lock."""
        if conn.dialect.name == 'mysql':
            waiting = "state LIKE 'Waiting for%%'"
            query = f'SELECT count(*) FROM information_schema.processlist WHERE {waiting}'
            return conn.exec_driver_sql(query).scalar_one()
        return conn.exec_driver_sql('SELECT count(*) FROM pg_locks WHERE NOT granted').scalar_one()
