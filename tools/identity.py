"""Try ``auth_strategy = keystone`` with a real Keystone: ``tox -e keystone``.

Starts Keystone on SQLite with Fernet tokens, makes projects and users, starts Placement in front of
it, and asks with tokens of all sorts. Everything is in a temporary folder and on loopback.
PLACEMENT_KEYSTONE_VENV names a virtual environment with the package keystone; without it, it has to
be in the one that runs this.
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
del sys.argv[1:]  # Keystone would take them for its own.
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
    """The users and projects of the test, and tokens for them."""

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
        self.projects = {'admin': self._find('projects', 'admin')}

    def _find(self, kind: str, name: str) -> str:
        answer = self.admin.get(f'{self.url}/{kind}', params={'name': name}).json()
        return answer[kind][0]['id']

    def _create(self, kind: str, body: dict[str, Any]) -> str:
        answer = self.admin.post(f'{self.url}/{kind}s', json={kind: body}).json()
        return answer[kind]['id']

    def make_project(self, name: str) -> None:
        self.projects[name] = self._create('project', {'name': name, 'domain_id': 'default'})

    def make_user(self, name: str, project: str, role: str) -> None:
        """Make a user with a role on a project; the role is made if need be."""
        user = self._create('user', {'name': name, 'password': PASSWORD, 'domain_id': 'default'})
        try:
            role_id = self._find('roles', role)
        except IndexError:
            role_id = self._create('role', {'name': role})
        self.admin.put(f'{self.url}/projects/{self.projects[project]}/users/{user}/roles/{role_id}')

    def make_admin_of_domain(self) -> None:
        """Give the admin of the cloud that role on the default domain too."""
        user, role = self._find('users', 'admin'), self._find('roles', 'admin')
        self.admin.put(f'{self.url}/domains/default/users/{user}/roles/{role}')

    def token(self, user: str, **scope: Any) -> str:
        """Give a token of a user for a scope, for example ``project_name='one'``."""
        if 'project_name' in scope:
            scope['project_domain_id'] = 'default'
        auth = v3.Password(
            self.url, username=user, password=PASSWORD, user_domain_id='default', **scope
        )
        return str(auth.get_token(session.Session()))

    def revoke(self, token: str) -> None:
        self.admin.delete(f'{self.url}/auth/tokens', headers={'X-Subject-Token': token})


class Checks:
    """Compares what is expected with what is, and remembers."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def same(self, what: str, expected: Any, found: Any) -> None:
        if expected == found:
            self.passed += 1
            print(f'ok    {what}: {found}')
        else:
            self.failed += 1
            print(f'WRONG {what}: {found!r} instead of {expected!r}')


Ask = Callable[..., requests.Response]


def main() -> int:
    checks = Checks()
    with (
        tempfile.TemporaryDirectory(prefix='placement-identity-') as folder,
        keystone(Path(folder)) as url,
    ):
        cloud = Cloud(url)
        for project in ('service', 'one', 'two'):
            cloud.make_project(project)
        cloud.make_user('placement', 'service', 'service')
        cloud.make_admin_of_domain()
        for user, role in (
            ('services', 'service'),
            ('reader', 'reader'),
            ('member', 'member_only'),
            ('another-admin', 'admin'),
        ):
            cloud.make_user(user, 'one', role)
        with placement(Path(folder), url, delay=False) as ask:
            check_tokens(checks, cloud, ask)
            check_unauthorized(checks, f'{url}/v3', ask)
        with placement(Path(folder), url, delay=True) as ask:
            check_delayed(checks, f'{url}/v3', cloud, ask)
    print(f'{checks.passed} passed, {checks.failed} failed')
    return int(checks.failed > 0)


def check_tokens(checks: Checks, cloud: Cloud, ask: Ask) -> None:
    """Who may do what, by role and scope."""
    one, two = cloud.projects['one'], cloud.projects['two']
    questions: dict[str, Callable[[str], int]] = {
        'GET /resource_providers': lambda t: ask('GET', '/resource_providers', t).status_code,
        'GET /usages of the project': (
            lambda t: ask('GET', f'/usages?project_id={one}', t).status_code
        ),
        'GET /usages of another project': (
            lambda t: ask('GET', f'/usages?project_id={two}', t).status_code
        ),
        # 400: the policy allowed it, and the body is none.
        'POST /reshaper': lambda t: ask('POST', '/reshaper', t, json=[]).status_code,
    }
    everything, nothing = [200, 200, 200, 400], [403, 403, 403, 403]
    project = {'project_name': 'one'}
    for who, token, expected in (
        ('a service', cloud.token('services', **project), everything),
        ('an admin', cloud.token('another-admin', **project), [200, 200, 200, 403]),
        ('a reader', cloud.token('reader', **project), [403, 200, 403, 403]),
        ('anybody else', cloud.token('member', **project), nothing),
        ('an admin of the system', cloud.token('admin', system_scope='all'), nothing),
        ('an admin of a domain', cloud.token('admin', domain_id='default'), nothing),
    ):
        for (what, question), status in zip(questions.items(), expected, strict=True):
            checks.same(f'{who}, {what}', status, question(token))

    token = cloud.token('member', **project)
    forged = {'X-Roles': 'admin,service', 'X-Identity-Status': 'Confirmed', 'X-Project-Id': two}
    answer = ask('GET', '/resource_providers', token, headers=forged)
    checks.same('forged roles beside a valid token', 403, answer.status_code)
    checks.same(
        'the refusal names the rule',
        True,
        'placement:resource_providers:list' in answer.json()['errors'][0]['detail'],
    )

    token = cloud.token('services', **project)
    checks.same('a token', 200, ask('GET', '/traits', token).status_code)
    cloud.revoke(token)
    checks.same('the token, revoked', 401, ask('GET', '/traits', token).status_code)


def check_unauthorized(checks: Checks, uri: str, ask: Ask) -> None:
    """What is said to those without a valid token, by the identity filter."""
    checks.same('GET / without token', 200, ask('GET', '/').status_code)
    checks.same('GET / with a bad one', 200, ask('GET', '/', 'bad').status_code)
    for what, headers in (
        ('no token', {}),
        ('a bad token', {'X-Auth-Token': 'bad'}),
        ('forged headers', {'X-Roles': 'admin', 'X-Identity-Status': 'Confirmed'}),
    ):
        answer = ask('GET', '/resource_providers', headers=headers)
        checks.same(what, 401, answer.status_code)
        check_challenge(checks, what, uri, answer)
        error = answer.json().get('error', {})
        checks.same(f'{what}: body', (401, 'Unauthorized'), (error.get('code'), error.get('title')))


def check_delayed(checks: Checks, uri: str, cloud: Cloud, ask: Ask) -> None:
    """With delay_auth_decision the service itself answers."""
    token = cloud.token('services', project_name='one')
    checks.same('delayed: a token', 200, ask('GET', '/resource_providers', token).status_code)
    for what, headers in (
        ('no token', {}),
        ('a bad token', {'X-Auth-Token': 'bad'}),
        (
            'forged headers',
            {'X-Roles': 'admin', 'X-User-Id': 'x', 'X-Identity-Status': 'Confirmed'},
        ),
    ):
        answer = ask('GET', '/resource_providers', headers=headers)
        checks.same(f'delayed: {what}', 401, answer.status_code)
        check_challenge(checks, f'delayed: {what}', uri, answer)
        document = answer.json()
        checks.same(
            f'delayed: {what}: body',
            (['code', 'message', 'title'], '401 Unauthorized'),
            (sorted(document), document.get('code')),
        )


def check_challenge(checks: Checks, what: str, uri: str, answer: requests.Response) -> None:
    checks.same(
        f'{what}: challenge', f'Keystone uri="{uri}"', answer.headers.get('www-authenticate')
    )
    checks.same(
        f'{what}: request id, no version',
        (True, False),
        ('x-openstack-request-id' in answer.headers, 'openstack-api-version' in answer.headers),
    )


@contextlib.contextmanager
def keystone(folder: Path) -> Iterator[str]:
    """Run an identity service; give its URL."""
    scripts = Path(os.environ.get(VARIABLE, sys.prefix), 'bin')
    if not (scripts / 'keystone-manage').exists():
        sys.exit(f'{VARIABLE} has to name a virtual environment with the package keystone')
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
        done = subprocess.run(manage, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f'{command} failed:\n{done.stdout}{done.stderr}')
    with served(scripts / 'python', 'keystone.wsgi.api', port, environment, folder):
        yield url


@contextlib.contextmanager
def placement(folder: Path, identity: str, delay: bool) -> Iterator[Ask]:
    """Run Placement in front of an identity service; give a function that asks it."""
    (folder / 'placement.conf').write_text(
        PLACEMENT_CONF.format(
            folder=folder, keystone=identity, password=PASSWORD, delay=str(delay).lower()
        )
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    environment |= {'OS_PLACEMENT_CONFIG_DIR': str(folder), 'PYTHONPATH': str(ROOT)}
    port = with_database.free_port()

    def ask(
        method: str,
        path: str,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        **arguments: Any,
    ) -> requests.Response:
        sent = {'OpenStack-API-Version': 'placement 1.39', **(headers or {})}
        if token is not None:
            sent['X-Auth-Token'] = token
        url = f'http://127.0.0.1:{port}{path}'
        return requests.request(method, url, headers=sent, timeout=60, **arguments)

    with served(Path(sys.executable), 'placement.wsgi.api', port, environment, folder):
        yield ask


def served(
    python: Path, module: str, port: int, environment: dict[str, str], folder: Path
) -> contextlib.AbstractContextManager[None]:
    """Serve the application of a module for the duration of the context."""
    command = [python, '-c', SERVE, module, str(port)]
    return web_server.served(module, command, port, environment, folder, tells_failures=True)


if __name__ == '__main__':
    sys.exit(main())
