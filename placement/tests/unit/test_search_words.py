"""Words that readers search for have an entry in the index of the documentation."""

from http import HTTPStatus
from pathlib import Path
import re

import ddt
from oslotest import base

from api_reference import responses
from api_reference.operations import OPERATIONS
import placement
from placement import microversion

ROOT = Path(placement.__file__).parents[1]
# Each word, and a page with its entry. The guides and the API reference have indexes of their own.
WORDS = (
    ('NoValidHost', 'doc/source/user/concepts.rst'),
    ('pagination', 'doc/source/user/concepts.rst'),
    ('pagination', 'api-ref/source/conventions.rst'),
    ('RBAC', 'doc/source/admin/configuration.rst'),
    ('overcommit', 'doc/source/user/concepts.rst'),
    ('oversubscription', 'doc/source/user/concepts.rst'),
    ('idempotency', 'doc/source/user/clients.rst'),
    ('hypervisor died', 'doc/source/admin/host-died.rst'),
    ('host down', 'doc/source/admin/host-died.rst'),
    ('NoValidHost', 'doc/source/admin/no-valid-host.rst'),
    ('host maintenance', 'doc/source/admin/take-host-down.rst'),
    ('rate limits', 'doc/source/admin/deployment.rst'),
    ('orphaned allocations', 'doc/source/admin/audit.rst'),
)

_INDEX = re.compile(r'^ *\.\. index:: (.+)$', re.MULTILINE)


def operations():
    """The operations with their paths."""
    for path, methods in OPERATIONS.items():
        for operation in methods.values() if path else ():
            yield path, operation


@ddt.ddt
class WordsTest(base.BaseTestCase):
    @ddt.data(*WORDS)
    @ddt.unpack
    def test_the_index_contains_the_word(self, word, page):
        # An exclamation mark makes an entry precede other results.
        entries = ', '.join(_INDEX.findall((ROOT / page).read_text())).replace('! ', '').split(', ')
        self.assertIn(word, entries)


class StatementsTest(base.BaseTestCase):
    """What the pages state about these words."""

    def test_no_other_request_has_a_limit(self):
        limited = {
            path
            for path, operation in operations()
            for parameter in operation.query or ()
            if parameter.name == 'limit'
        }
        self.assertEqual({'/allocation_candidates'}, limited)

    def test_no_response_is_too_many_requests(self):
        newest = microversion.MAX_VERSION
        statuses = {
            response.status
            for path, operation in operations()
            for response in responses.responses(operation, newest)
        }
        self.assertIn(HTTPStatus.CONFLICT, statuses)
        self.assertNotIn(HTTPStatus.TOO_MANY_REQUESTS, statuses)
