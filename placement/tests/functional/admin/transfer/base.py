"""A migrated database, exports to memory, and imports from memory."""

import io
from typing import Any

from placement.admin import progress
from placement.admin.transfer import export, load, tables, target
from placement.admin.transfer.pseudonyms import Rename
from placement.tests.functional.db import base


class TestCase(base.TestCase):
    """Provides a database with tables and without rows."""

    kind_of_database = base.MigratedDatabase

    def export(self, rename: Rename | None = None) -> bytes:
        """Return the file that an export writes."""
        file = io.BytesIO()
        export.export(file, progress.silent, rename)
        return file.getvalue()

    def load(self, data: bytes, force: bool = False) -> target.OverCapacity:
        """Import a file."""
        return load.load(io.BytesIO(data), progress.silent, force)[1]

    def counts(self) -> dict[str, int]:
        """The number of rows by kind; kinds without rows are omitted."""
        with self.engine.connect() as conn:
            return {name: number for name, number in tables.counts(conn).items() if number}

    def execute(self, statement: Any, *parameters: Any) -> None:
        """Execute a statement in a transaction of its own."""
        with self.engine.begin() as conn:
            conn.execute(statement, *parameters)
