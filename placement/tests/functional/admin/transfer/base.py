"""A migrated database, exports to memory, and imports from memory."""

from collections import Counter
import io
import json
from typing import Any

from placement.admin import console
from placement.admin.console import CannotProceedError
from placement.admin.transfer import export, load
from placement.db.sqlalchemy import models
from placement.tests import servers
from placement.tests.functional.db import base
from placement.tests.unit.admin.transfer import documents

EXAMPLE = documents.file_of(documents.EXAMPLE)
# The order of the tables is that of the kinds of rows.
TABLES = (
    *(models.resource_classes, models.traits, models.placement_aggregates),
    *(models.resource_providers, models.inventories, models.resource_provider_traits),
    *(models.resource_provider_aggregates, models.consumer_types, models.projects),
    *(models.users, models.consumers, models.allocations),
)


class TestCase(base.TestCase):
    """Provides a database with tables and without rows."""

    kind_of_database = base.MigratedDatabase

    def export(self) -> bytes:
        """Return the file that an export writes."""
        file = io.BytesIO()
        export.export(file, console.silent)
        return file.getvalue()

    def load(self, data: bytes, force: bool = False) -> int:
        """Import a file; return the number of inventories whose usage exceeds the capacity."""
        return load.load(io.BytesIO(data), console.silent, force)[1]

    def load_example(self) -> None:
        """Replace all rows by the example."""
        servers.delete_all_rows(self.engine)
        self.load(EXAMPLE)

    def assertUnchanged(self, data: bytes) -> None:
        """An export after the import of a file is the same file."""
        self.load(data)
        self.assertEqual(data.decode(), self.export().decode())

    def refusal(self, data: bytes, force: bool = False) -> str:
        """Return why a file is refused; nothing is imported."""
        before = self.counts()
        error = self.assertRaises(CannotProceedError, self.load, data, force)
        self.assertEqual(before, self.counts())
        return str(error)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Return the lines of an export of one kind."""
        lines = [json.loads(line) for line in self.export().splitlines()[1:]]
        return [line for line in lines if line['kind'] == kind]

    def counts(self) -> Counter[str]:
        """The number of rows by kind."""
        numbers = map(self.count, TABLES)
        return +Counter(dict(zip(documents.KINDS, numbers, strict=True)))

    def execute(self, statement: Any, *parameters: Any) -> None:
        """Execute a statement in a transaction of its own."""
        with self.engine.begin() as conn:
            conn.execute(statement, *parameters)
