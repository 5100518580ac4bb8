"""A small sound cloud, and SQL statements that damage it."""

from collections.abc import Callable, Collection, Iterator
import contextlib
from typing import Any
from unittest import mock
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.admin import audit
from placement.admin.audit import run
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.tests.functional import base
from placement.tests.functional.base import claim

INSTANCE, MIGRATION, AGGREGATE, SECOND = (str(uuid.UUID(int=number)) for number in (1, 2, 3, 9))
# No row has these ids. A test may insert a row with the first one, and the next row of a later test
# then has the id after it.
GONE, LOST = 9_000_001, 9_900_001

PROVIDERS = models.resource_providers
INVENTORIES = models.inventories
ALLOCATIONS = models.allocations
CONSUMERS = models.consumers
TRAIT_LINKS = models.resource_provider_traits
AGGREGATE_LINKS = models.resource_provider_aggregates


class TestCase(base.TestCase):
    """Creates a host with a child, each of which has an inventory and a consumer."""

    def setUp(self) -> None:
        super().setUp()
        self.host = self.make_provider('host', {'VCPU': 8, 'DISK_GB': 100})
        self.node = self.make_provider('node', {'VCPU': 4}, parent=self.host)
        self.put_claim(INSTANCE, {self.host: {'VCPU': 2, 'DISK_GB': 10}})
        self.put_claim(MIGRATION, {self.node: {'VCPU': 1}})

    def put_claim(
        self, consumer: str, amounts: dict[str, dict[str, int]], project: str = 'project'
    ) -> None:
        self.send_ok('PUT', f'/allocations/{consumer}', claim(amounts, project=project))

    def execute(self, *statements: sa.Executable) -> None:
        """Execute statements without foreign keys, as a restored backup can contain such rows."""
        with db_api.get_placement_engine().begin() as conn:
            name = conn.dialect.name
            if name == 'postgresql':
                conn.exec_driver_sql('SET LOCAL session_replication_role = replica')
            elif name == 'mysql':
                conn.exec_driver_sql('SET SESSION foreign_key_checks = 0')
            for statement in statements:
                conn.execute(statement)
            if name == 'mysql':
                conn.exec_driver_sql('SET SESSION foreign_key_checks = 1')

    def delete(self, *conditions: sa.ColumnElement[bool]) -> None:
        """Delete the rows that satisfy the conditions, each of its own table."""
        self.execute(*(sa.delete(one.left.table).where(one) for one in conditions))

    def insert(self, table: sa.Table, **values: Any) -> None:
        self.execute(sa.insert(table).values(**values))

    def update(self, condition: sa.ColumnElement[bool], **values: Any) -> None:
        self.execute(sa.update(condition.left.table).where(condition).values(**values))

    def rows(self, *columns: sa.ColumnElement[Any]) -> list[tuple[Any, ...]]:
        """The values of columns, ordered by the first column."""
        with engine.snapshot() as conn:
            select = sa.select(*columns).order_by(columns[0])
            return [tuple(row) for row in conn.execute(select)]

    def id_of(self, provider: str) -> int:
        """The id of a provider."""
        with engine.snapshot() as conn:
            return int(
                conn.execute(sa.select(PROVIDERS.c.id).where(PROVIDERS.c.uuid == provider)).scalar()
            )

    def findings(
        self, only: Collection[str] | None = None, **options: Any
    ) -> tuple[audit.Finding, ...]:
        with engine.snapshot() as conn:
            return audit.findings(conn, only, **options)

    def found(self, only: Collection[str] | None = None) -> dict[str, int]:
        """The number of findings by code."""
        return {finding.code: finding.count for finding in self.findings(only)}

    def repair(
        self, *only: str, fix: bool = True, purge: bool = False, servers: str | None = None
    ) -> dict[str, audit.Finding]:
        """Correct findings; return what was found by code."""
        options = run.Options(only or None, fix, purge, servers)
        config = self.service.conf_fixture.conf
        return {finding.code: finding for finding in run.run(config, options)}

    @contextlib.contextmanager
    def batches_of(self, size: int) -> Iterator[None]:
        """Let a transaction correct at most this number of findings."""
        with mock.patch('placement.admin.audit.run.BATCH', size):
            yield

    @contextlib.contextmanager
    def before_the_first_write(self, change: Callable[[], object]) -> Iterator[None]:
        """Execute a change after the findings were read, and before the first is corrected."""
        original, changes = engine.write, [change]

        def write(*arguments: Any) -> Any:
            if changes:
                changes.pop()()
            return original(*arguments)

        with mock.patch.object(engine, 'write', write):
            yield

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables."""
        with engine.snapshot() as conn:
            return {
                table.name: sorted(map(tuple, conn.execute(sa.select(table))), key=repr)
                for table in models.metadata.sorted_tables
            }

    def insert_allocation(self, **values: Any) -> None:
        """Insert an allocation of 1 VCPU from the host; `values` are other values."""
        row = {
            'resource_provider_id': self.id_of(self.host),
            'consumer_id': INSTANCE,
            'resource_class_id': 0,
            'used': 1,
            **values,
        }
        self.insert(ALLOCATIONS, **row)

    def insert_inventory(self, **values: Any) -> None:
        """Insert an inventory of 5 MEMORY_MB of the host; `values` are other values."""
        row = {
            'resource_provider_id': self.id_of(self.host),
            'resource_class_id': 1,
            'total': 5,
            'reserved': 0,
            'min_unit': 1,
            'max_unit': 5,
            'step_size': 1,
            'allocation_ratio': 1.0,
            **values,
        }
        self.insert(INVENTORIES, **row)

    def insert_consumer(self, uuid_: str, **values: Any) -> None:
        """Insert a consumer with the project and the user of the other consumers."""
        ((project_id, user_id),) = self.rows(CONSUMERS.c.project_id, CONSUMERS.c.user_id)[:1]
        row = {'uuid': uuid_, 'project_id': project_id, 'user_id': user_id, **values}
        self.insert(CONSUMERS, **row)
