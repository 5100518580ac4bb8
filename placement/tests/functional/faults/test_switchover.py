"""The first write after a switchover finds the new primary server, without a restart."""

import uuid

import sqlalchemy as sa

from placement.tests import servers, where
from placement.tests.functional.faults import machines
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim


@where.also_on_mysql('MySQL has privileges and error numbers of its own.')
class SwitchoverTest(testcase.RaceTestCase):
    """The pooled connections lead to a server that has become read-only, and new ones do not.

    One server acts as both: it rejects the writes of those connections only that are open already.
    """

    def setUp(self):
        self.engine = machines.engine_of_run()
        self.server = machines.DatabaseServer()
        self.addCleanup(self.server.remove)
        self.admin = sa.make_url(self.server.create_database('placement'))
        self.account = servers.create_account(self.admin, ['ALL'])
        if self.engine == 'postgresql':
            servers.execute(self.admin, f'GRANT ALL ON SCHEMA public TO {self.account.username}')
        self.connection = self.account.render_as_string(hide_password=False)
        super().setUp()
        self.provider = self.make_provider({'VCPU': 10})

    def claim(self) -> testcase.Response:
        return self.send('PUT', f'/allocations/{uuid.uuid4()}', claim({self.provider: 1}))

    def set_read_only(self, value: str) -> None:
        """Let the server reject writes, or accept them; on PostgreSQL for new connections."""
        if self.engine != 'postgresql':
            servers.execute(self.admin, f'SET GLOBAL read_only = {value}')
            return
        role = f'ALTER ROLE {self.account.username}'
        servers.execute(self.admin, f'{role} SET default_transaction_read_only = {value}')

    def switch_over(self) -> None:
        self.set_read_only('on')
        self.addCleanup(self.set_read_only, 'off')
        if self.engine != 'postgresql':
            # A new privilege applies to new connections.
            privilege = 'READ ONLY ADMIN' if self.engine == 'mariadb' else 'CONNECTION_ADMIN'
            account = f"'{self.account.username}'@'127.0.0.1'"
            servers.execute(self.admin, f'GRANT {privilege} ON *.* TO {account}')
            return
        machines.close_all(self.connection)
        self.assertUnavailable(self.claim())
        self.set_read_only('off')

    def test_writes_succeed(self):
        self.switch_over()
        for _ in range(2):
            response = self.claim()
            self.assertEqual(204, response.status, response.body)
        self.audit()

    def test_a_server_that_stays_read_only(self):
        self.set_read_only('on')
        self.addCleanup(machines.close_all, self.connection)
        self.addCleanup(self.set_read_only, 'off')
        if self.engine == 'postgresql':
            machines.close_all(self.connection)
        self.assertUnavailable(self.claim())
        self.assertEqual(200, self.send('GET', f'/resource_providers/{self.provider}').status)
