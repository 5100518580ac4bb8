"""Test ``auth_strategy = keystone`` with a real Keystone: ``tox -e keystone``.

This script starts Keystone on SQLite with Fernet tokens, creates projects and users, starts
Placement with this Keystone, and sends requests to Placement with tokens of different roles and
scopes. All files are in a temporary directory, and all servers listen on the loopback interface.
Set PLACEMENT_KEYSTONE_VENV to the path of a virtual environment in which the package keystone is
installed. If the variable is not set, the script runs Keystone from the current environment.
"""

from collections.abc import Callable, Iterator
import contextlib
import os
from pathlib import Path
import subprocess
import sys
import tempfile
from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3
import requests
import web_server
import with_database

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = 'PLACEMENT_KEYSTONE_VENV'
PASSWORD = 'secret'

SERVE = """
import importlib, sys
import waitress
module, port = sys.argv[1:]
del sys.argv[1:]  # Keystone parses the remaining arguments.
waitress.serve(importlib.import_module(module).application, listen=f'127.0.0.1:{port}')
"""

KEYSTONE_CONF = """
[database]
connection = sqlite:///{folder}/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[cache]
enabled = false
"""

PLACEMENT_CONF = """
[placement_database]
connection = sqlite:///{folder}/placement.db
sync_on_startup = true
[keystone_authtoken]
www_authenticate_uri = {keystone}/v3
auth_url = {keystone}/v3
auth_type = password
username = placement
password = {password}
project_name = service
user_domain_id = default
project_domain_id = default
service_token_roles_required = true
token_cache_time = -1
delay_auth_decision = {delay}
"""


class Cloud:
    """Creates projects, users and tokens in Keystone."""

    def __init__(self, url: str) -> None:
        self.url = f'{url}/v3'
        self.admin = session.Session(
            v3.Password(
                self.url,
                username='admin',
                password=PASSWORD,
                project_name='admin',
                user_domain_id='default',
                project_domain_id='default',
            )
        )
        self.projects = {'admin': self._get_id('projects', 'admin')}

    def _get_id(self, kind: str, name: str) -> str:
        document = self.admin.get(f'{self.url}/{kind}', params={'name': name}).json()
        return str(document[kind][0]['id'])

    def _create(self, kind: str, body: dict[str, Any]) -> str:
        document = self.admin.post(f'{self.url}/{kind}s', json={kind: body}).json()
        return str(document[kind]['id'])

    def create_project(self, name: str) -> None:
        """Create a project."""
        self.projects[name] = self._create('project', {'name': name, 'domain_id': 'default'})

    def create_user(self, name: str, project: str, role: str) -> None:
        """Create a user and assign a role on a project; create the role if it does not exist."""
        user = self._create('user', {'name': name, 'password': PASSWORD, 'domain_id': 'default'})
        try:
            role_id = self._get_id('roles', role)
        except IndexError:
            role_id = self._create('role', {'name': role})
        self.admin.put(f'{self.url}/projects/{self.projects[project]}/users/{user}/roles/{role_id}')

    def add_domain_admin(self) -> None:
        """Assign the role `admin` on the default domain to the user `admin`."""
        user, role = self._get_id('users', 'admin'), self._get_id('roles', 'admin')
        self.admin.put(f'{self.url}/domains/default/users/{user}/roles/{role}')

    def token(self, user: str, **scope: Any) -> str:
        """Return a token for a user and a scope, for example ``project_name='one'``."""
        if 'project_name' in scope:
            scope['project_domain_id'] = 'default'
        auth = v3.Password(
            self.url, username=user, password=PASSWORD, user_domain_id='default', **scope
        )
        return str(auth.get_token(session.Session()))

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        self.admin.delete(f'{self.url}/auth/tokens', headers={'X-Subject-Token': token})


class Checks:
    """Compares expected with actual values, and counts passed and failed checks."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def equal(self, title: str, expected: Any, actual: Any) -> None:
        """Compare an expected with an actual value, print the result, and count it."""
        if expected == actual:
            self.passed += 1
            print(f'ok    {title}: {actual}')
        else:
            self.failed += 1
            print(f'WRONG {title}: {actual!r} instead of {expected!r}')


Send = Callable[..., requests.Response]


def main() -> int:
    """Run all checks and return 1 if a check failed."""
    checks = Checks()
    with (
        tempfile.TemporaryDirectory(prefix='placement-identity-') as folder,
        keystone(Path(folder)) as url,
    ):
        cloud = Cloud(url)
        for project in ('service', 'one', 'two'):
            cloud.create_project(project)
        cloud.create_user('placement', 'service', 'service')
        cloud.add_domain_admin()
        for user, role in (
            ('services', 'service'),
            ('reader', 'reader'),
            ('member', 'member_only'),
            ('another-admin', 'admin'),
        ):
            cloud.create_user(user, 'one', role)
        with placement(Path(folder), url, delay=False) as send:
            check_tokens(checks, cloud, send)
            check_unauthorized(checks, f'{url}/v3', send)
        with placement(Path(folder), url, delay=True) as send:
            check_delayed(checks, f'{url}/v3', cloud, send)
    print(f'{checks.passed} passed, {checks.failed} failed')
    return int(checks.failed > 0)


def check_tokens(checks: Checks, cloud: Cloud, send: Send) -> None:
    """Check which requests are allowed for each combination of role and scope."""
    one, two = cloud.projects['one'], cloud.projects['two']
    operations: dict[str, Callable[[str], int]] = {
        'GET /resource_providers': lambda t: send('GET', '/resource_providers', t).status_code,
        'GET /usages of the project': (
            lambda t: send('GET', f'/usages?project_id={one}', t).status_code
        ),
        'GET /usages of another project': (
            lambda t: send('GET', f'/usages?project_id={two}', t).status_code
        ),
        # The body is invalid, so 400 means that the policy allows the request.
        'POST /reshaper': lambda t: send('POST', '/reshaper', t, json=[]).status_code,
    }
    allowed, forbidden = [200, 200, 200, 400], [403, 403, 403, 403]
    project = {'project_name': 'one'}
    for user, token, statuses in (
        ('a service', cloud.token('services', **project), allowed),
        ('an admin', cloud.token('another-admin', **project), [200, 200, 200, 403]),
        ('a reader', cloud.token('reader', **project), [403, 200, 403, 403]),
        ('another role', cloud.token('member', **project), forbidden),
        ('an admin of the system', cloud.token('admin', system_scope='all'), forbidden),
        ('an admin of a domain', cloud.token('admin', domain_id='default'), forbidden),
    ):
        for (title, operation), status in zip(operations.items(), statuses, strict=True):
            checks.equal(f'{user}, {title}', status, operation(token))

    token = cloud.token('member', **project)
    forged = {'X-Roles': 'admin,service', 'X-Identity-Status': 'Confirmed', 'X-Project-Id': two}
    response = send('GET', '/resource_providers', token, headers=forged)
    checks.equal('forged roles with a valid token', 403, response.status_code)
    checks.equal(
        'the error message has the name of the rule',
        True,
        'placement:resource_providers:list' in response.json()['errors'][0]['detail'],
    )

    token = cloud.token('services', **project)
    checks.equal('a valid token', 200, send('GET', '/traits', token).status_code)
    cloud.revoke(token)
    checks.equal('the revoked token', 401, send('GET', '/traits', token).status_code)


def check_unauthorized(checks: Checks, uri: str, send: Send) -> None:
    """Check the responses of keystonemiddleware to requests without a valid token."""
    checks.equal('GET / without token', 200, send('GET', '/').status_code)
    checks.equal('GET / with an invalid token', 200, send('GET', '/', 'bad').status_code)
    for title, headers in (
        ('no token', {}),
        ('an invalid token', {'X-Auth-Token': 'bad'}),
        ('forged headers', {'X-Roles': 'admin', 'X-Identity-Status': 'Confirmed'}),
    ):
        response = send('GET', '/resource_providers', headers=headers)
        checks.equal(title, 401, response.status_code)
        check_challenge(checks, title, uri, response)
        error = response.json().get('error', {})
        checks.equal(
            f'{title}: body', (401, 'Unauthorized'), (error.get('code'), error.get('title'))
        )


def check_delayed(checks: Checks, uri: str, cloud: Cloud, send: Send) -> None:
    """Check the 401 responses of Placement if keystonemiddleware delays the decision."""
    token = cloud.token('services', project_name='one')
    checks.equal(
        'delayed: a valid token', 200, send('GET', '/resource_providers', token).status_code
    )
    for title, headers in (
        ('no token', {}),
        ('an invalid token', {'X-Auth-Token': 'bad'}),
        (
            'forged headers',
            {'X-Roles': 'admin', 'X-User-Id': 'x', 'X-Identity-Status': 'Confirmed'},
        ),
    ):
        response = send('GET', '/resource_providers', headers=headers)
        checks.equal(f'delayed: {title}', 401, response.status_code)
        check_challenge(checks, f'delayed: {title}', uri, response)
        document = response.json()
        checks.equal(
            f'delayed: {title}: body',
            (['code', 'message', 'title'], '401 Unauthorized'),
            (sorted(document), document.get('code')),
        )


def check_challenge(checks: Checks, title: str, uri: str, response: requests.Response) -> None:
    """Check the WWW-Authenticate header and the other headers of a 401 response."""
    checks.equal(
        f'{title}: challenge', f'Keystone uri="{uri}"', response.headers.get('www-authenticate')
    )
    checks.equal(
        f'{title}: request id, no version',
        (True, False),
        ('x-openstack-request-id' in response.headers, 'openstack-api-version' in response.headers),
    )


@contextlib.contextmanager
def keystone(folder: Path) -> Iterator[str]:
    """Run Keystone while the context is active; yield its URL."""
    scripts = Path(os.environ.get(VARIABLE, sys.prefix), 'bin')
    if not (scripts / 'keystone-manage').exists():
        sys.exit(f'Set {VARIABLE} to the path of a virtual environment with the package keystone')
    (folder / 'keystone.conf').write_text(KEYSTONE_CONF.format(folder=folder))
    environment = os.environ | {'OS_KEYSTONE_CONFIG_DIR': str(folder)}
    port = with_database.free_port()
    url = f'http://127.0.0.1:{port}'
    for name in ('fernet', 'credential'):
        (folder / name).mkdir(mode=0o700)
    endpoints = ('--bootstrap-public-url', f'{url}/v3', '--bootstrap-internal-url', f'{url}/v3')
    owner = ('--keystone-user', str(os.getuid()), '--keystone-group', str(os.getgid()))
    for command in (
        ('db_sync',),
        ('fernet_setup', *owner),
        ('credential_setup', *owner),
        ('bootstrap', '--bootstrap-password', PASSWORD, *endpoints),
    ):
        manage = [scripts / 'keystone-manage', '--config-dir', folder, *command]
        completed = subprocess.run(manage, env=environment, capture_output=True, text=True)
        if completed.returncode:
            raise RuntimeError(f'{command} failed:\n{completed.stdout}{completed.stderr}')
    with served(scripts / 'python', 'keystone.wsgi.api', port, environment, folder):
        yield url


@contextlib.contextmanager
def placement(folder: Path, identity: str, delay: bool) -> Iterator[Send]:
    """Run Placement with a Keystone; yield a function that sends requests to Placement."""
    (folder / 'placement.conf').write_text(
        PLACEMENT_CONF.format(
            folder=folder, keystone=identity, password=PASSWORD, delay=str(delay).lower()
        )
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    environment |= {'OS_PLACEMENT_CONFIG_DIR': str(folder), 'PYTHONPATH': str(ROOT)}
    port = with_database.free_port()

    def send(
        method: str,
        path: str,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        **arguments: Any,
    ) -> requests.Response:
        all_headers = {'OpenStack-API-Version': 'placement 1.39', **(headers or {})}
        if token is not None:
            all_headers['X-Auth-Token'] = token
        url = f'http://127.0.0.1:{port}{path}'
        return requests.request(method, url, headers=all_headers, timeout=60, **arguments)

    with served(Path(sys.executable), 'placement.wsgi.api', port, environment, folder):
        yield send


def served(
    python: Path, module: str, port: int, environment: dict[str, str], folder: Path
) -> contextlib.AbstractContextManager[None]:
    """Serve the attribute `application` of a module while the context is active."""
    command = [python, '-c', SERVE, module, str(port)]
    context: contextlib.AbstractContextManager[None] = web_server.served(
        module, command, port, environment, folder, print_failures=True
    )
    return context


if __name__ == '__main__':
    sys.exit(main())
