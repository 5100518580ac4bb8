"""The service starts, serves, and is upgraded with the configurations of deployment tools."""

import os
from pathlib import Path
import re
import shutil
import signal
import string
import subprocess
import sys
import tempfile

import ddt
from oslotest import base
import requests
from testtools import content

from placement.tests import servers
from placement.tests.functional import memcached_server
from placement.tests.functional.cmd import identity_server
from placement.tests.functional.deployers import tools
from placement.tests.functional.deployment import stack
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST, wait_until

SYNC = ('manage', 'db', 'sync')
UPGRADE = (SYNC, ('manage', 'db', 'online_data_migrations'), ('status', 'upgrade', 'check'))
# The first directories of all absolute paths in the files.
_PATH = re.compile(r'(?<![\w.])/(?=(?:etc|openstack|opt|usr|var)\b)')
_MODULES = ('mpm_event', 'alias', 'authz_core', 'proxy', 'proxy_uwsgi', 'setenvif')


@ddt.ddt
class ToolsTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        machines.engine_of_run()
        folder = tempfile.TemporaryDirectory(prefix='placement-tool-')
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.port = machines.free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.addCleanup(self.show_logs)

    @ddt.data(*tools.TOOLS)
    def test_the_service_runs_as_with_the_tool(self, name: str) -> None:
        """Install and start the service as a tool does, use it, and upgrade it."""
        self.tool = tools.TOOLS[name]
        self.write_files()
        self.execute(*SYNC)
        self.start()
        wait_until(self.is_healthy, 'the health check fails')
        self.assertEqual(401, self.status('GET', '/resource_providers'))
        self.assertEqual(401, self.status('GET', '/resource_providers', 'invalid'))
        token = identity_server.TOKEN
        self.assertEqual(200, self.status('GET', '/resource_providers?name=one', token))
        self.assertEqual(201, self.status('PUT', '/resource_classes/CUSTOM_ONE', token))
        for command in UPGRADE:
            self.execute(*command)
        self.assertEqual(204, self.status('PUT', '/resource_classes/CUSTOM_ONE', token))

    def write_files(self) -> None:
        """Write the files of the tool below `root`, with the values of this test."""
        identity = self.useFixture(identity_server.IdentityServer(catalog=('identity',)))
        user, group = stack.user()
        values = {
            'database': servers.create(),
            'group': group,
            'home': self.root,
            'keystone': identity.url,
            'memcached': self.useFixture(memcached_server.Memcached()).address,
            'password': identity_server.PASSWORD,
            'port': self.port,
            'region': identity.region,
            'user': user,
        }
        for folder in self.tool.folders:
            self.path(folder).mkdir(parents=True)
        programs = self.path(self.tool.environment)
        programs.parent.mkdir(parents=True, exist_ok=True)
        programs.symlink_to(sys.prefix)
        for path, text in self.tool.files.items():
            self.path(path).parent.mkdir(parents=True, exist_ok=True)
            self.path(path).write_text(string.Template(self.below(text)).substitute(values))
        if self.tool.script:
            self.path(self.tool.script).parent.mkdir(parents=True)
            shutil.copy(programs / 'bin' / 'placement-api', self.path(self.tool.script))

    def below(self, text: str) -> str:
        """Return a text whose absolute paths are below `root`."""
        return _PATH.sub(f'{self.root}/', text)

    def path(self, path: str) -> Path:
        return Path(self.below(path))

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the service and the commands."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        # oslo.config searches the configuration in /etc and then in $SNAP/etc.
        return {**variables, 'SNAP': str(self.root), 'PYTHONPATH': commands.SEARCH_PATH}

    def execute(self, program: str, *arguments: str) -> None:
        """Execute a command of Placement, which must succeed."""
        path = self.path(self.tool.environment) / 'bin' / f'placement-{program}'
        options = map(self.below, self.tool.options)
        completed = subprocess.run(
            (path, *options, *arguments), env=self.environment(), capture_output=True, text=True
        )
        output = completed.stdout + completed.stderr
        self.addDetail(' '.join((program, *arguments)), content.text_content(output))
        self.assertEqual(0, completed.returncode, output)

    def start(self) -> None:
        """Start the web servers of the tool."""
        if self.tool.uwsgi:
            self.spawn(commands.program('uwsgi'), '--ini', str(self.path(self.tool.uwsgi)))
        if self.tool.apache:
            folder = self.root / 'apache'
            folder.mkdir()
            directives = (commands.wsgi_module(), f'WSGISocketPrefix {folder}/wsgi')
            site = self.path(self.tool.apache)
            self.spawn(*stack.apache(self.port, folder, site, _MODULES, directives))

    def spawn(self, *command: str) -> None:
        """Start a program that runs until the end of the test."""
        with (self.root / f'{Path(command[0]).name}.log').open('wb') as log:
            process = subprocess.Popen(
                command,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)

    def is_healthy(self) -> bool:
        """Return the result of the health check; all web servers must run."""
        self.assertEqual({None}, {process.poll() for process in self.processes})
        status = self.status('GET', self.tool.health)
        # The application cannot be loaded.
        self.assertNotIn(status, (404, 500))
        return status == 200

    def status(self, method: str, path: str, token: str = '') -> int:
        """Return the status of a response, or 0 if the server does not respond."""
        headers = {'OpenStack-API-Version': 'placement 1.39'}
        if token:
            headers['X-Auth-Token'] = token
        url = f'http://127.0.0.1:{self.port}{self.tool.prefix}{path}'
        try:
            return requests.request(method, url, headers=headers, timeout=LONGEST).status_code
        except requests.ConnectionError:
            return 0

    def show_logs(self) -> None:
        """Attach the logs to the report of a failure."""
        for path in self.root.rglob('*.log'):
            text = path.read_text(errors='replace')
            self.addDetail(str(path.relative_to(self.root)), content.text_content(text))
