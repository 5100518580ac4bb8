"""The generation column, whose value can be NULL in rows of old releases."""

import pathlib

from oslotest import base

import placement


class ColumnTest(base.BaseTestCase):
    def test_only_the_audit_reads_a_generation_that_can_be_null(self):
        """All other modules use `models.generation`, which returns 0 in place of NULL."""
        package = pathlib.Path(placement.__file__).parent
        readers = {
            str(path.relative_to(package))
            for path in package.rglob('*.py')
            if package / 'tests' not in path.parents and '.c.generation' in path.read_text()
        }
        self.assertEqual({'admin/audit/providers.py', 'db/sqlalchemy/models.py'}, readers)
