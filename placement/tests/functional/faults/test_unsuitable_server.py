"""The service does not start with an unsuitable server, and names the remedy."""

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslotest import base

from placement import conf, db_api, deploy, exception
from placement.tests.functional.faults import machines


class StatementFormatTest(base.BaseTestCase):
    def setUp(self):
        if machines.engine_of_run() != 'mariadb':
            self.skipTest('the test runs only on MariaDB')
        # super().setUp() sets a temporary directory that only the current user can enter, so the
        # server, which runs as another user, is started before it.
        self.server = machines.DatabaseServer('--log-bin=binary', '--binlog-format=STATEMENT')
        self.addCleanup(self.server.remove)
        super().setUp()

    def test_a_binary_log_of_statements_is_unsuitable(self):
        url = self.server.create_database('placement')
        config = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        conf.register_opts(config.conf)
        config.config(group='placement_database', connection=url, sync_on_startup=True)
        config.conf([], default_config_files=[])
        db_api.configure.reset()
        self.addCleanup(db_api.configure.reset)
        db_api.configure(config.conf)
        error = self.assertRaises(exception.UnsuitableDatabase, deploy.loadapp, config.conf)
        self.assertIn('binlog_format=STATEMENT', str(error))
        self.assertIn('ROW', str(error))
