"""The worked examples, tested with the solver alone."""

from oslotest import base

from placement.tests import worlds
from placement.tests.unit.candidates import cases


class WorkedExamplesTest(base.BaseTestCase):
    """Each test is one row of an example."""


def _test(case: cases.Case):
    def test(self: WorkedExamplesTest) -> None:
        query = case.world.parse(case.row.query, case.version)
        found = case.world.with_names(query, case.world.solve(query))
        expected = worlds.expected(case.row.candidates)
        if any(mappings is None for _, mappings in expected) or not expected:
            found = worlds.without_mappings(found)
        self.assertEqual(expected, found)

    return test


for _number, _case in enumerate(cases.CASES):
    setattr(WorkedExamplesTest, f'test_{_number:03d}_{_case.name}'.replace(' ', '_'), _test(_case))
