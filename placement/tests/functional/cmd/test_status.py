"""The command placement-status."""

import json
import pathlib

import fixtures
import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.tests import where
from placement.tests.functional.cmd import base

CHECKS = [
    'Missing Root Provider IDs',
    'Incomplete Consumers',
    'Policy File JSON to YAML Migration',
]
SUCCESS, WARNING, FAILURE = 0, 1, 2


@where.not_on('postgresql', reason='test_preflight executes the same checks.')
class UpgradeCheckTest(base.TestCase):
    module = 'placement.cmd.status'

    def check(self, *arguments: str) -> tuple[int, str]:
        done = self.run_command(*arguments[1:], 'upgrade', 'check', *arguments[:1])
        self.assertEqual('', done.stderr)
        return done.status, done.stdout

    def results(self, *options: str) -> tuple[int, dict[str, dict]]:
        status, output = self.check('--json', *options)
        document = json.loads(output)
        self.assertEqual('Upgrade Check Results', document['name'])
        self.assertEqual(CHECKS, [check['check'] for check in document['checks']])
        return status, {check['check']: check for check in document['checks']}

    def insert_orphan(self, consumer: str) -> None:
        with self.engine.begin() as conn:
            for resource_class in (0, 1):
                conn.execute(
                    sa.insert(models.allocations).values(
                        resource_provider_id=1,
                        consumer_id=consumer,
                        resource_class_id=resource_class,
                        used=1,
                    )
                )

    def test_success(self):
        migration.upgrade('head')
        status, output = self.check()
        self.assertEqual(0, status, output)
        self.assertIn('| Upgrade Check Results ', output)
        self.assertEqual(3, output.count('| Result: Success '))
        self.assertEqual(3, output.count('| Details: None '))
        self.assertEqual(CHECKS, sorted(CHECKS, key=output.index))
        done = self.run_command('upgrade', '--json', 'check')
        self.assertEqual(3, len(json.loads(done.stdout)['checks']))

    def test_data_of_older_releases_and_a_policy_file_in_json(self):
        migration.upgrade('head')
        self.insert_orphan('a')
        self.insert_orphan('b')
        status, results = self.results()
        self.assertEqual((1, [SUCCESS, WARNING, SUCCESS]), (status, results_of(results)))
        for text in ('2', 'placement-manage db online_data_migrations'):
            self.assertIn(text, results[CHECKS[1]]['details'])
        expected = {'check': CHECKS[0], 'result': SUCCESS, 'details': None}
        self.assertEqual(expected, results[CHECKS[0]])

        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.resource_providers).values(uuid='rp', name='rp'))
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'policy.json').write_text('{"placement:traits:list": "role:admin"}')
        (folder / 'placement.conf').write_text('[oslo_policy]\npolicy_file = policy.json\n')
        status, results = self.results('--config-file', str(folder / 'placement.conf'))
        self.assertEqual((2, [FAILURE, WARNING, FAILURE]), (status, results_of(results)))
        self.assertIn('placement-manage db online_data_migrations', results[CHECKS[0]]['details'])


def results_of(results: dict[str, dict]) -> list[int]:
    """Return the results of the checks in their order."""
    return [results[check]['result'] for check in CHECKS]
