"""The command line of `placement-manage headroom`."""

import argparse
import contextlib
import io

from oslotest import base

from placement.cmd import headroom


class CommandLineTest(base.BaseTestCase):
    def parse(self, *arguments: str) -> argparse.Namespace:
        parser = argparse.ArgumentParser()
        headroom.add_commands(parser.add_subparsers())
        return parser.parse_args(['headroom', *arguments])

    def test_numbers(self):
        self.assertEqual(7, self.parse('query', '--max-claims', '7').max_claims)
        for number in ('0', '-1', '1.5', 'x', '', '1_0', '٣', '9' * 30):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                error = self.assertRaises(SystemExit, self.parse, 'query', f'--max-claims={number}')
            self.assertEqual(2, error.code)
            self.assertIn(f"'{number}' is not a number from 1 to 999999999", errors.getvalue())

    def test_at_least_one_query(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertRaises(SystemExit, self.parse)
        self.assertEqual(['a', '-', 'b'], self.parse('a', '-', 'b').queries)
