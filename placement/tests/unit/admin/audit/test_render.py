"""The report of the audit as tables and as a JSON document."""

import json

from oslotest import base

from placement.admin import tables
from placement.admin.audit import render
from placement.admin.audit.model import CODES, Finding

HOST = '7b5f7f4e-3f0a-4d2e-9d52-0d7c1b0c1f6a'
IDLE = Finding(
    'idle-consumer',
    'error',
    3,
    1,
    (
        {
            'consumer_uuid': 'a',
            'project': 'p',
            'before': {'id': 7, 'uuid': 'a', 'updated_at': None},
            'after': None,
        },
        {'consumer_uuid': 'b', 'project_id': 9, 'user': 'u'},
    ),
)
OVER = Finding(
    'over-capacity',
    'notice',
    1,
    0,
    (
        {
            'provider': 'host-1',
            'provider_uuid': HOST,
            'resource_class': 'VCPU',
            'used': 10,
            'capacity': 8,
        },
    ),
)


class ReportTest(base.BaseTestCase):
    def test_tables(self):
        report = render.report([IDLE, OVER])
        self.assertEqual(
            [
                'Code Severity Count Fixed Meaning',
                'idle-consumer error 3 1 consumers without allocations',
                'over-capacity notice 1 0 inventories whose usage exceeds their capacity',
                'idle-consumer, changed rows:',
                'Row Before After',
                'consumer_uuid: a, project: p id: 7, uuid: a, updated_at: - -',
                'idle-consumer:',
                'Consumer Project and user',
                'b id 9 u',
                'The table shows 1 of 2 findings.',
                'over-capacity:',
                'Provider Class Used Capacity',
                f'host-1 {HOST} VCPU 10 8',
            ],
            list(_texts(report)),
        )

    def test_uuids_are_not_broken_across_lines(self):
        row = {'provider': 'host-1', 'provider_uuid': HOST}
        for code, values in (
            ('root-missing', {'root_provider_uuid': HOST, 'true_root_provider_uuid': HOST}),
            ('parent-cycle', {'parent_provider_uuid': HOST}),
            (
                'no-inventory',
                {'consumer_uuid': HOST, 'resource_class': 'MEMORY_MB', 'used': 262144},
            ),
        ):
            rows = ({**row, **values},)
            report = render.report([Finding(code, 'error', 1, 0, rows)])
            count = sum(value == HOST for value in rows[0].values())
            self.assertEqual(count, report.count(HOST), report)
        owners = {'project': HOST[:32], 'user': HOST[:32], 'consumer_type': 'INSTANCE'}
        finding = Finding('idle-consumer', 'error', 1, 0, ({'consumer_uuid': HOST, **owners},))
        self.assertEqual(
            (3, 1),
            (render.report([finding]).count(HOST[:32]), render.report([finding]).count(HOST)),
        )

    def test_rows_with_different_names_share_a_table(self):
        rows = (
            {'table': 'allocations', 'provider_id': 4, 'used': 3},
            {'table': 'resource_provider_traits', 'provider_id': 5, 'trait': 'CUSTOM_A'},
        )
        report = render.report([Finding('orphan-provider', 'error', 2, 0, rows)])
        self.assertIn('Table Provider Used Trait', list(_texts(report)))
        self.assertIn('resource_provider_traits id 5 - CUSTOM_A', list(_texts(report)))

    def test_nothing_was_found(self):
        self.assertEqual('The audit found nothing.', render.report([]))

    def test_long_rows_fit_the_width_and_are_printable(self):
        row = {
            'provider': 'x' * 200,
            'provider_uuid': HOST,
            'consumer_uuid': HOST,
            'project': 'a\x1b[31m' * 20,
            'names': ['n' * 90, 'm' * 90],
        }
        change = {**row, 'before': row, 'after': row}
        report = render.report([Finding(CODES[0].name, 'error', 2, 1, (row, change))])
        for line in report.split('\n'):
            self.assertLessEqual(len(line), tables.WIDTH)
            self.assertTrue(line.isprintable(), line)


class DocumentTest(base.BaseTestCase):
    def test_all_keys(self):
        document = json.loads(json.dumps(render.document([OVER])))
        expected = {
            'code': 'over-capacity',
            'severity': 'notice',
            'count': 1,
            'fixed': 0,
            'rows': [dict(OVER.rows[0])],
        }
        self.assertEqual({'findings': [expected]}, document)


def _texts(report):
    """Yield the lines of a report without borders and repeated blanks."""
    for line in report.split('\n'):
        text = ' '.join(line.replace('|', ' ').split())
        if text and not text.startswith('+'):
            yield text
