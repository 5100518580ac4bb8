"""A server that cannot work is refused when the service starts, with the way out."""

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslotest import base

from placement import conf, db_api, deploy, exception
from placement.tests.functional.faults import machines


class StatementFormatTest(base.BaseTestCase):
    def setUp(self):
        if machines.engine_of_run() != 'mariadb':
            self.skipTest('this is about MariaDB')
        # Before the test has a folder for temporary files that only this user may enter.
        self.server = machines.DatabaseServer('--log-bin=binary', '--binlog-format=STATEMENT')
        self.addCleanup(self.server.remove)
        super().setUp()

    def test_binary_log_of_statements(self):
        url = self.server.create_database('placement')
        config = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        conf.register_opts(config.conf)
        config.config(group='placement_database', connection=url, sync_on_startup=True)
        config.conf([], default_config_files=[])
        db_api.configure.reset()
        self.addCleanup(db_api.configure.reset)
        db_api.configure(config.conf)
        refusal = self.assertRaises(exception.UnsuitableDatabase, deploy.loadapp, config.conf)
        self.assertIn('binlog_format=STATEMENT', str(refusal))
        self.assertIn('ROW', str(refusal))
