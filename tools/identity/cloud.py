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
        self._create('user', {'name': name, 'password': PASSWORD, 'domain_id': 'default'})
        self.add_role(name, project, role)

    def add_role(self, user: str, project: str, role: str) -> None:
        """Assign a role to a user on a project; create the role if it does not exist."""
        try:
            self._get_id('roles', role)
        except IndexError:
            self._create('role', {'name': role})
        self.admin.put(self._assignment(user, project, role))

    def remove_role(self, user: str, project: str, role: str) -> None:
        """Remove a role of a user on a project."""
        self.admin.delete(self._assignment(user, project, role))

    def _assignment(self, user: str, project: str, role: str) -> str:
        user_id, role_id = self._get_id('users', user), self._get_id('roles', role)
        return f'{self.url}/projects/{self.projects[project]}/users/{user_id}/roles/{role_id}'

    def restricted_token(self, user: str, project: str, **rule: str) -> str:
        """Return a token of an application credential that permits only some requests.

        :param rule: the access rule: `service`, `method`, and `path`
        """
        auth = self._password(user, project_name=project, project_domain_id='default')
        credential = {'name': f'{user} {rule}', 'access_rules': [rule]}
        document = session.Session(auth).post(
            f'{self.url}/users/{self._get_id("users", user)}/application_credentials',
            json={'application_credential': credential},
        )
        created = document.json()['application_credential']
        restricted = v3.ApplicationCredential(
            self.url,
            application_credential_id=created['id'],
            application_credential_secret=created['secret'],
        )
        return str(restricted.get_token(session.Session()))

    def add_domain_admin(self) -> None:
        """Assign the role `admin` on the default domain to the user `admin`."""
        user, role = self._get_id('users', 'admin'), self._get_id('roles', 'admin')
        self.admin.put(f'{self.url}/domains/default/users/{user}/roles/{role}')

    def token(self, user: str, **scope: Any) -> str:
        """Return a token for a user and a scope, for example ``project_name='one'``."""
        if 'project_name' in scope:
            scope['project_domain_id'] = 'default'
        return str(self._password(user, **scope).get_token(session.Session()))

    def _password(self, user: str, **scope: Any) -> v3.Password:
        return v3.Password(
            self.url, username=user, password=PASSWORD, user_domain_id='default', **scope
        )

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        self.admin.delete(f'{self.url}/auth/tokens', headers={'X-Subject-Token': token})
