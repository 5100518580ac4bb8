"""The page with programs: their length, and the table of responses with 409 Conflict."""

from http import HTTPStatus
from pathlib import Path
import re

from oslotest import base

from api_reference.operations import OPERATIONS
from api_reference.pages import tables
import placement
from placement import errors

PAGE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'user' / 'clients.rst'
ALL = 'All requests that write'

_ROW = re.compile(
    r'^   \* - ``(placement\.[\w.]+)``\n     - (.+?)\n     - (.+?)(?=\n   \* - |\n\n|\Z)',
    re.MULTILINE | re.DOTALL,
)


def declared():
    """The requests with each error code and its condition."""
    found = {}
    for path, methods in OPERATIONS.items():
        for method, operation in methods.items() if path else ():
            for reason in tables.reasons(operation):
                if reason.status == HTTPStatus.CONFLICT:
                    key = (reason.code or errors.UNDEFINED_CODE, reason.when)
                    found.setdefault(key, set()).add(f'{method} {path}')
    return found


class ConflictTableTest(base.BaseTestCase):
    def rows(self):
        rows = _ROW.findall(PAGE.read_text())
        self.assertGreater(len(rows), 10)
        return rows

    def test_the_table_lists_every_code_with_its_requests(self):
        expected, common = set(), set()
        for (code, _), sent in declared().items():
            # Almost all writes can fail because of retries or of a constraint: one row for all.
            if len(sent) > 15:
                common.add(code)
            else:
                expected |= {(code, request) for request in sent}
        listed = {
            (code, request)
            for code, requests, _ in self.rows()
            for request in re.findall('``(.+?)``', requests)
        }
        self.assertEqual(expected, listed)
        self.assertEqual(common, {code for code, requests, _ in self.rows() if requests == ALL})

    def test_every_row_states_what_to_do(self):
        for code, _, action in self.rows():
            self.assertRegex(action.strip(), r'(?s)\A[A-Z].+\.\Z', code)
