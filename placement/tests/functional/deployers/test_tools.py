"""The service starts, serves, and is upgraded with the configurations of deployment tools.

The files are minimal. The options of `placement.conf` are those of all tools. The test replaces `$`
and a name, and puts absolute paths below a directory.
"""

from dataclasses import dataclass
import os
from pathlib import Path
import re
import shutil
import signal
import string
import subprocess
import sys

import ddt
import requests
from testtools import content

from placement.tests import servers
from placement.tests.functional import memcached_server
from placement.tests.functional.cmd import identity_server
from placement.tests.functional.deployment import stack
from placement.tests.functional.faults import machines
from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST, wait_until

SYNC = ('manage', 'db', 'sync')
UPGRADE = (SYNC, ('manage', 'db', 'online_data_migrations'), ('status', 'upgrade', 'check'))
CONFIGURATION = """
[DEFAULT]
debug = true
log_dir = /var/log/placement
use_stderr = true
state_path = /var/lib/placement
[oslo_concurrency]
lock_path = /var/lib/placement/tmp
[cache]
backend = oslo_cache.memcache_pool
enabled = true
memcache_servers = $memcached
[placement_database]
connection = $database
connection_recycle_time = 10
max_overflow = 1000
max_pool_size = 1
max_retries = -1
pool_timeout = 30
[oslo_middleware]
enable_proxy_headers_parsing = true
[oslo_policy]
enforce_scope = True
enforce_new_defaults = True
[api]
auth_strategy = keystone
[keystone_authtoken]
www_authenticate_uri = $keystone
auth_url = $keystone
auth_type = password
auth_version = v3
project_domain_name = Default
user_domain_name = Default
project_name = service
username = placement
password = $password
insecure = false
region_name = $region
service_token_roles = admin
service_token_roles_required = True
service_type = placement
signing_dir = /var/cache/placement
token_cache_time = 300
memcached_servers = $memcached
memcache_security_strategy = ENCRYPT
memcache_secret_key = secret
"""
UWSGI = """
[uwsgi]
add-header = Connection: close
buffer-size = 65535
die-on-term = true
enable-threads = true
exit-on-reload = false
hook-master-start = unix_signal:15 gracefully_kill_them_all
lazy-apps = true
master = true
processes = 1
thunder-lock = true
worker-reload-mercy = 80
"""
# The site of a tool whose Apache executes the script.
SITE = """
KeepAliveTimeout 75
TraceEnable Off
<VirtualHost *:$port>
    WSGIDaemonProcess placement-api processes=1 threads=1 user=$user group=$group \\
        home=$home display-name=%{GROUP}
    WSGIProcessGroup placement-api
    WSGIApplicationGroup %{GLOBAL}
    WSGIPassAuthorization On
    WSGIScriptAlias / "$script"
    ErrorLogFormat "%{cu}t %M"
</VirtualHost>
<Location />
    Require all granted
</Location>
"""
DIRECTORY = '/etc/placement/placement.conf.d'
# The first directories of all absolute paths in the files.
_PATH = re.compile(r'(?<![\w.])/(?=(?:etc|openstack|opt|usr|var)\b)')
_MODULES = ('mpm_event', 'alias', 'authz_core', 'proxy', 'proxy_uwsgi', 'setenvif')


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool runs Placement.

    :ivar environment: the directory in which `bin` contains the programs
    :ivar uwsgi: the options of uWSGI in addition to those of all tools, if it runs
    :ivar site: the site of Apache, if it runs
    :ivar script: the path to which the tool copies `placement-api`, if it does
    :ivar configuration: the path of the configuration
    :ivar options: the options of all commands
    :ivar prefix: the path prefix
    :ivar health: the path of the health check below the prefix
    """

    environment: str
    uwsgi: str = ''
    site: str = ''
    script: str = ''
    configuration: str = '/etc/placement/placement.conf'
    options: tuple[str, ...] = ()
    prefix: str = ''
    health: str = '/'


TOOLS = {
    'kolla-ansible': Tool(
        '/var/lib/kolla/venv',
        uwsgi="""
module = placement.wsgi.api:application
http = 127.0.0.1:$port
http-auto-chunked = true
http-chunked-input = true
http-raw-body = true
logto2 = /var/log/placement/placement-api-uwsgi.log
plugins-dir = /usr/lib/uwsgi/plugins
plugins = python3
socket-timeout = 30
static-map = /static=/var/lib/kolla/venv/lib/python3/site-packages/static
""",
    ),
    'OpenStack-Ansible and OpenStack-Helm': Tool(
        '/openstack/venvs/placement-32.0.0',
        uwsgi="""
virtualenv = /openstack/venvs/placement-32.0.0
wsgi-file = /openstack/venvs/placement-32.0.0/bin/placement-api
http-socket = 127.0.0.1:$port
threads = 1
log-x-forwarded-for = true
procname-prefix-spaced = placement-api:
route-user-agent = ^kube-probe.* donotlog:
""",
        health='/healthcheck',
    ),
    'charm': Tool('/usr', site=SITE),
    'OpenStack-Helm with Apache': Tool(
        '/var/lib/openstack',
        site=f"""{SITE}
Alias /placement $script
<Location /placement>
    SetHandler wsgi-script
    Options +ExecCGI
    WSGIProcessGroup placement-api
    WSGIApplicationGroup %{{GLOBAL}}
    WSGIPassAuthorization On
</Location>
""",
        script='/var/www/cgi-bin/placement/placement-api',
        options=('--config-file', '/etc/placement/placement.conf'),
    ),
    'placement-operator': Tool(
        '/usr',
        site=SITE,
        configuration=f'{DIRECTORY}/placement.conf',
        options=('--config-dir', DIRECTORY),
    ),
    'DevStack': Tool(
        '/opt/stack/data/venv',
        uwsgi="""
module = placement.wsgi.api:application
virtualenv = /opt/stack/data/venv
socket = /var/run/uwsgi/placement-api.socket
chmod-socket = 666
plugins = http,python3
socket-timeout = 30
start-time = %t
""",
        site=(
            'ProxyPass "/placement" '
            '"unix:/var/run/uwsgi/placement-api.socket|uwsgi://uwsgi-uds-placement-api" '
            'retry=0 acquire=1\n'
        ),
        prefix='/placement',
        health='',
    ),
}


@ddt.ddt
class ToolsTest(base.FolderTestCase):
    def setUp(self) -> None:
        super().setUp()
        machines.engine_of_run()
        self.port = machines.free_port()
        self.processes: list[subprocess.Popen[bytes]] = []

    @ddt.data(*TOOLS)
    def test_the_service_runs_as_with_the_tool(self, name: str) -> None:
        """Install and start the service as a tool does, use it, and upgrade it."""
        self.tool = TOOLS[name]
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
        """Write the files of the tool below `folder`, with the values of this test."""
        identity = self.useFixture(identity_server.IdentityServer(catalog=('identity',)))
        user, group = stack.user()
        self.values = {
            'database': servers.create(),
            'group': group,
            'home': self.folder,
            'keystone': identity.url,
            'memcached': self.useFixture(memcached_server.Memcached()).address,
            'password': identity_server.PASSWORD,
            'port': self.port,
            'region': identity.region,
            'script': self.path(self.tool.script or f'{self.tool.environment}/bin/placement-api'),
            'user': user,
        }
        for folder in ('/var/log/placement', '/var/run/uwsgi'):
            self.path(folder).mkdir(parents=True)
        programs = self.path(self.tool.environment)
        programs.parent.mkdir(parents=True, exist_ok=True)
        programs.symlink_to(sys.prefix)
        self.write(self.tool.configuration, CONFIGURATION)
        if self.tool.script:
            self.path(self.tool.script).parent.mkdir(parents=True)
            shutil.copy(programs / 'bin' / 'placement-api', self.path(self.tool.script))

    def write(self, path: str, text: str) -> Path:
        """Write a file of the tool, and return its path."""
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(string.Template(self.below(text)).substitute(self.values))
        return file

    def below(self, text: str) -> str:
        """Return a text whose absolute paths are below `folder`."""
        return _PATH.sub(f'{self.folder}/', text)

    def path(self, path: str) -> Path:
        return Path(self.below(path))

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the service and the commands."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        # oslo.config searches the configuration in /etc and then in $SNAP/etc.
        return {**variables, 'SNAP': str(self.folder), 'PYTHONPATH': commands.SEARCH_PATH}

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
            file = self.write('/etc/placement/uwsgi.ini', UWSGI + self.tool.uwsgi)
            self.spawn(commands.program('uwsgi'), '--ini', str(file))
        if self.tool.site:
            site = self.write('/etc/apache2/sites-enabled/placement.conf', self.tool.site)
            folder = self.folder / 'apache'
            folder.mkdir()
            directives = (commands.wsgi_module(), f'WSGISocketPrefix {folder}/wsgi')
            self.spawn(*commands.apache(self.port, folder, site, _MODULES, directives))

    def spawn(self, *command: str) -> None:
        """Start a program that runs until the end of the test."""
        with (self.folder / f'{Path(command[0]).name}.log').open('wb') as log:
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
