"""The worked examples, through the pure parts of the search."""

from oslotest import base

from placement.tests.unit.candidates import cases, worlds


class WorkedExamplesTest(base.BaseTestCase):
    """Each test is one row of the table."""


def _test(case: cases.Case):
    def test(self: WorkedExamplesTest) -> None:
        query = case.world.parse(case.query, case.version)
        found = case.world.answers(query, case.world.solve(query))
        expected = worlds.answers(case.answers)
        if any(mappings is None for _, mappings in expected) or not expected:
            found = worlds.without_mappings(found)
        self.assertEqual(expected, found)

    return test


for _number, _case in enumerate(cases.CASES):
    setattr(WorkedExamplesTest, f'test_{_number:03d}_{_case.name}'.replace(' ', '_'), _test(_case))
