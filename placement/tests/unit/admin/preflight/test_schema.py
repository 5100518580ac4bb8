"""Checks of the schema revision and of the stored data."""

from oslo_upgradecheck import upgradecheck
from oslotest import base

from placement.admin import upgrade_checks
from placement.admin.preflight import schema
from placement.admin.preflight.model import Result, Verdict

OK, WARNING, FAILURE = Result.OK, Result.WARNING, Result.FAILURE
REVISIONS = ('new', 'old')
TABLES = frozenset({'a', 'b'})
NONE: frozenset[str] = frozenset()


class RevisionTest(base.BaseTestCase):
    def judge(self, current: str | None, existing: frozenset, sync: bool = False) -> Verdict:
        found = schema.Schema(current, existing, TABLES - existing)
        return schema.judge_revision(found, REVISIONS, sync)

    def test_revisions(self):
        for current, existing, expected, remedy in (
            ('new', TABLES, OK, ''),
            ('new', {'a'}, FAILURE, 'backup'),
            ('old', TABLES, FAILURE, 'placement-manage db sync'),
            ('old', {'a'}, FAILURE, 'placement-manage db sync'),
            ('newer', TABLES, WARNING, 'newer release'),
            (None, NONE, FAILURE, 'placement-manage db sync'),
            (None, {'a'}, FAILURE, 'right database'),
            (None, TABLES, WARNING, 'placement-manage db stamp head'),
        ):
            verdict = self.judge(current, frozenset(existing))
            self.assertEqual(expected, verdict.result, (current, existing))
            self.assertIn(remedy, verdict.remedy)

    def test_the_service_can_upgrade_the_schema(self):
        for current, existing in (('old', TABLES), (None, NONE)):
            verdict = self.judge(current, existing, sync=True)
            self.assertEqual(OK, verdict.result)
            self.assertIn('sync_on_startup', verdict.detail)


class UpgradeCheckTest(base.BaseTestCase):
    def test_results(self):
        for code, expected in (
            (upgradecheck.Code.WARNING, WARNING),
            (upgradecheck.Code.FAILURE, FAILURE),
        ):
            result = upgradecheck.Result(code, f'Rows: 2. {upgrade_checks.DATA_REMEDY}')
            verdict = schema.judge_upgrade(result, upgrade_checks.DATA_REMEDY)
            self.assertEqual(Verdict(expected, 'Rows: 2.', upgrade_checks.DATA_REMEDY), verdict)

    def test_success(self):
        verdict = schema.judge_upgrade(upgradecheck.Result(upgradecheck.Code.SUCCESS), 'x')
        self.assertEqual((OK, ''), (verdict.result, verdict.remedy))
