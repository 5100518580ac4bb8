"""The tables of the commands on terminals of several widths."""

import io
import textwrap
import uuid

import fixtures
from oslotest import base

from placement.admin import console

HOST, OTHER = (str(uuid.UUID(int=number)) for number in (1, 2))
PROJECT = uuid.UUID(int=3).hex
QUERY = f'resources=VCPU:4,MEMORY_MB:8192&required=HW_CPU_X86_AVX2,COMPUTE_NODE&in_tree={HOST}'


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


class TableTest(base.BaseTestCase):
    def table(self, columns: int, titles: str, *rows: list[object], **options) -> list[str]:
        """Return the lines of a table on a terminal of this width, which it does not exceed."""
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', str(columns)))
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', Terminal()))
        lines = console.table(titles.split('|'), rows, **options).splitlines()
        self.assertLessEqual(max(map(len, lines)), columns)
        return lines

    def assertTable(self, expected: str, found: list[str]) -> None:
        self.assertEqual(textwrap.dedent(expected).strip(), '\n'.join(found))

    def test_the_width_is_that_of_the_terminal(self):
        for columns in (60, 80, 120, 200):
            self.assertEqual(columns, len(self.table(columns, 'Numbers', ['1 ' * 500])[0]) + 1)

    def test_the_width_of_a_pipe_is_100(self):
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '200'))
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', io.StringIO()))
        self.assertEqual(100, console.table(['Letters'], [['x' * 500]]).index('\n'))

    def test_uuids_are_whole_at_every_width(self):
        row = [f'host {HOST}', PROJECT, f'in:{HOST},{OTHER},{PROJECT}', QUERY, 16]
        for columns in range(60, 240, 10):
            text = '\n'.join(self.table(columns, 'Provider|Project|Aggregates|Query|Fits', row))
            for one, count in ((HOST, 3), (OTHER, 1), (PROJECT, 2)):
                self.assertEqual(count, text.count(one), text)

    def test_words_are_whole_if_the_table_fits(self):
        self.assertTable(
            f"""
            +--------------------------------------+-------------------------+------+
            | Provider                             | Trait                   | Used |
            +--------------------------------------+-------------------------+------+
            | compute-1                            | COMPUTE_STATUS_DISABLED |    5 |
            | {HOST} |                         |      |
            +--------------------------------------+-------------------------+------+
            """,
            self.table(
                80,
                'Provider|Trait|Used',
                [f'compute-1 {HOST}', 'COMPUTE_STATUS_DISABLED', 5],
                numbers=['Used'],
            ),
        )

    def test_many_columns_have_no_padding(self):
        checks = 'Inventory|Units|Capacity|Free|in_tree|Aggregates|Traits'
        self.assertTable(
            """
            +--------------+---------+-----+--------+----+-------+----------+------+
            |Request       |Inventory|Units|Capacity|Free|in_tree|Aggregates|Traits|
            +--------------+---------+-----+--------+----+-------+----------+------+
            |MEMORY_MB:8192|8        |8    |8       |6   |6      |6         |6     |
            +--------------+---------+-----+--------+----+-------+----------+------+
            """,
            self.table(80, f'Request|{checks}', ['MEMORY_MB:8192', 8, 8, 8, 6, 6, 6, 6]),
        )

    def test_a_table_that_does_not_fit_has_a_line_for_each_cell(self):
        self.assertTable(
            f"""
            +----------+---------------------------------------------+
            | Consumer | {HOST}        |
            | Provider | host-1 {OTHER} |
            | Used     | 5                                           |
            +----------+---------------------------------------------+
            | Consumer | {OTHER}        |
            | Provider | host-2 {HOST} |
            | Used     | 0                                           |
            +----------+---------------------------------------------+
            """,
            self.table(
                60,
                'Consumer|Provider|Used',
                [HOST, f'host-1 {OTHER}', 5],
                [OTHER, f'host-2 {HOST}', 0],
            ),
        )

    def test_a_terminal_that_is_too_narrow(self):
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '10'))
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', Terminal()))
        self.assertIn(HOST, console.table(['Provider'], [[f'host-1 {HOST}']]))

    def test_control_characters(self):
        self.assertIn(r'a\x1b[2Jb', '\n'.join(self.table(80, 'Name', ['a\x1b[2Jb'])))
