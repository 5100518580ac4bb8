"""The codes of the audit, and how results of checks and changes become findings."""

from oslotest import base

from placement.admin.audit import model
from placement.admin.audit.model import Change, Finding, Found
from placement.admin.failure import CannotProceedError


class CodesTest(base.BaseTestCase):
    def test_the_order_of_the_report(self):
        self.assertEqual(
            ('idle-consumer', 'unused'), model.select_codes(['unused', 'idle-consumer'])
        )
        self.assertEqual(model.NAMES, model.select_codes(None))

    def test_an_unknown_code_is_refused_with_all_codes(self):
        error = self.assertRaises(CannotProceedError, model.select_codes, ['unused', 'nonsense'])
        for text in ('nonsense', *model.NAMES):
            self.assertIn(text, str(error))

    def test_severities(self):
        notices = {code.name for code in model.CODES if code.severity == 'notice'}
        self.assertEqual(
            {
                *('over-capacity', 'incomplete-consumer', 'duplicate-name', 'unused'),
                *('several-trees', 'no-server'),
            },
            notices,
        )


class AssembleTest(base.BaseTestCase):
    def test_codes_without_findings_are_left_out(self):
        self.assertEqual((), model.assemble({'unused': Found()}))

    def test_the_order_does_not_depend_on_the_checks(self):
        found = {'unused': Found(1, ({'name': 'a'},)), 'no-inventory': Found(1, ({'used': 2},))}
        expected = (
            Finding('no-inventory', 'error', 1, 0, ({'used': 2},)),
            Finding('unused', 'notice', 1, 0, ({'name': 'a'},)),
        )
        self.assertEqual(expected, model.assemble(found))

    def test_changes_are_counted_and_listed_before_the_rest(self):
        changes = [
            Change('idle-consumer', {'consumer_uuid': 'a'}, {'id': 1}, None),
            Change('idle-consumer', {'consumer_uuid': 'b'}, {'id': 2}, None, 3),
        ]
        found = {'idle-consumer': Found(2, ({'consumer_uuid': 'c'}, {'consumer_uuid': 'd'}))}
        (finding,) = model.assemble(found, changes, row_limit=1)
        self.assertEqual((6, 4, 2), (finding.count, finding.fixed, finding.left))
        expected = (
            {'consumer_uuid': 'a', 'before': {'id': 1}, 'after': None},
            {'consumer_uuid': 'b', 'before': {'id': 2}, 'after': None},
            {'consumer_uuid': 'c'},
        )
        self.assertEqual(expected, finding.rows)


class ExitStatusTest(base.BaseTestCase):
    def test_notices_and_corrected_errors_are_0(self):
        for finding in (Finding('unused', 'notice', 3), Finding('root-missing', 'error', 3, 3)):
            self.assertEqual(0, model.exit_status([finding]))
        self.assertEqual(0, model.exit_status([]))

    def test_errors_are_1(self):
        for fixed in (0, 2):
            findings = [Finding('unused', 'notice', 3), Finding('root-missing', 'error', 3, fixed)]
            self.assertEqual(1, model.exit_status(findings))
