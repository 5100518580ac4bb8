"""The demo cloud of tools/demo.py, which the guide pages of the tools use."""

import json
import os
from pathlib import Path
import subprocess
import sys
import urllib.request

import sqlalchemy as sa

from placement import direct
from placement.db.sqlalchemy import migration, models
from placement.tests import where
from placement.tests.functional.cmd import base
from placement.tests.functional.faults import machines

TOOLS = Path(__file__).parents[4] / 'tools'
DONE = 'The demo cloud is registered: 18 provider trees, 53 consumers.\n'
NUMA = (
    'resources_CPU=PCPU:4,MEMORY_MB:8192&resources_NET=SRIOV_NET_VF:1'
    '&required_NET=CUSTOM_PHYSNET_DATA&same_subtree=_CPU,_NET&group_policy=none'
)
GPU = (
    'resources=VCPU:8,MEMORY_MB:32768,DISK_GB:100&resources_GPU=PGPU:1&required_GPU=CUSTOM_GPU_80GB'
)


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class DemoTest(base.TestCase):
    def candidates(self, query: str) -> list[list[str]]:
        """The names of the providers of each candidate."""
        with self.engine.connect() as conn:
            columns = models.resource_providers.c
            names = dict(conn.execute(sa.select(columns.uuid, columns.name)).all())
        with direct.PlacementDirect(self.config, latest_microversion=True) as client:
            response = client.get(f'/allocation_candidates?{query}').json()
        return sorted(
            sorted(names[uuid] for uuid in candidate['allocations'])
            for candidate in response['allocation_requests']
        )

    def test_the_cloud_is_registered_once(self):
        done = self.register_demo_cloud()
        self.assertEqual((0, '', DONE), (done.status, done.stderr, done.stdout))
        tables = (models.resource_providers, models.inventories, models.allocations)
        before = [self.count(table) for table in tables]

        done = self.register_demo_cloud()
        self.assertEqual('The demo cloud is already registered.\n', done.stdout)
        self.assertEqual([36, 71, 178], before)
        self.assertEqual(before, [self.count(table) for table in tables])

    def test_the_requests_of_the_guide(self):
        self.register_demo_cloud()
        self.assertEqual(
            [], self.candidates('resources=VCPU:4,MEMORY_MB:8192&required=HW_CPU_X86_AVX512F')
        )
        enabled = 'resources=VCPU:4,MEMORY_MB:8192&root_required=!COMPUTE_STATUS_DISABLED'
        self.assertEqual(6, len(self.candidates(enabled)))
        self.assertEqual([['numa-01-node-0', 'numa-01-node-0-card']], self.candidates(NUMA))
        self.assertEqual(
            [['gpu-01', 'gpu-01-device-2'], ['gpu-01', 'gpu-01-device-3']], self.candidates(GPU)
        )
        self.assertEqual([], self.candidates('resources=CUSTOM_BAREMETAL_LARGE:1'))

    def test_an_interrupted_registration_is_completed(self):
        self.register_demo_cloud()
        with direct.PlacementDirect(self.config, latest_microversion=True) as client:
            (last,) = client.get('/resource_providers?name=compute-08').json()['resource_providers']
            self.assertEqual(204, client.delete(f'/resource_providers/{last["uuid"]}').status_code)
        done = self.register_demo_cloud()
        self.assertEqual((0, DONE), (done.status, done.stdout), done.stderr)
        self.assertEqual(36, self.count(models.resource_providers))

    def test_a_name_that_is_in_use(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.execute(
                sa.insert(models.resource_providers).values(
                    uuid='rp', name='compute-01', root_provider_id=1, id=1
                )
            )
        done = self.register_demo_cloud()
        self.assertEqual((1, ''), (done.status, done.stdout))
        self.assertRegex(done.stderr, r'^Error: POST /resource_providers returned 409: .*\n$')


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class ServeTest(base.TestCase):
    module = 'placement.cmd.manage'

    def test_the_demo_cloud_has_a_database_of_its_own(self):
        script = (
            'import sys; sys.path.insert(0, sys.argv[1]); import serve; '
            'print(*(serve._parse(words).database.name for words in ([], ["--demo"])), '
            'serve._parse(["--demo", "--database", "other.db"]).database)'
        )
        done = subprocess.run(
            [sys.executable, '-c', script, str(TOOLS)], capture_output=True, text=True, check=True
        )
        self.assertEqual('placement.db placement-demo.db other.db\n', done.stdout)

    @where.only_on('sqlite', reason='Tools/serve.py creates an SQLite file.')
    def test_the_server_registers_the_cloud(self):
        database = Path(self.database.url.removeprefix('sqlite:///'))
        log = database.with_suffix('.log')
        worker = machines.Worker(
            self.database.url,
            lambda port: [
                *(sys.executable, str(TOOLS / 'serve.py'), '--inside', '--demo'),
                *('--port', str(port), '--database', str(database)),
            ],
            log=log,
        )
        self.addCleanup(worker.stop)
        output = log.read_text()
        self.assertIn(DONE.strip(), output)
        # The last commands, in a shell without the variables of this test.
        commands = [line for line in output.splitlines() if line.startswith('  ')][-6:]
        self.assertEqual('  placement-manage report report.html', commands[-1])
        page = database.with_name('report.html')
        # The settings are those of the service, so only noauth2 is a warning.
        commands += ['set +e', 'placement-status preflight > preflight.txt']
        done = subprocess.run(
            ['sh', '-e', '-c', '\n'.join(commands)],
            env={'PATH': os.environ['PATH']},
            cwd=database.parent,
            check=False,
        )
        self.assertIn('gpu-01', page.read_text())
        verdict, *_ = database.with_name('preflight.txt').read_text().splitlines()
        self.assertEqual((1, '1 warning, '), (done.returncode, verdict[:11]))
        request = urllib.request.Request(
            f'http://127.0.0.1:{worker.port}/resource_providers?name=gpu-01',
            headers={'X-Auth-Token': 'admin'},
        )
        with urllib.request.urlopen(request) as response:
            self.assertIn(b'"name":"gpu-01"', response.read())
        self.check_what_tours_leave(f'http://127.0.0.1:{worker.port}')

    def check_what_tours_leave(self, url: str) -> None:
        """Run the tour twice; it leaves only what the API cannot delete."""
        for _ in range(2):
            command = [sys.executable, str(TOOLS / 'tour.py'), '--url', url]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(self.run_command('audit', '--format', 'json').stdout)['findings']
        # The demo cloud has an inventory with more usage than capacity.
        self.assertEqual(
            [('over-capacity', 1), ('unused', 3)], [(one['code'], one['count']) for one in found]
        )
