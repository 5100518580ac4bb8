"""Projects, users and tokens in Keystone."""

from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3

from tools.identity.servers import PASSWORD


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
