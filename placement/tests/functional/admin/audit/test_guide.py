"""The guide page of the audit names all codes, and its SQL statements correct the findings."""

import pathlib
import re
import textwrap

import sqlalchemy as sa

import placement
from placement.admin.audit import model
from placement.db.sqlalchemy import models
from placement.tests.functional.admin.audit import base
from placement.tests.functional.admin.audit.base import (
    ALLOCATIONS,
    CONSUMERS,
    INSTANCE,
    MIGRATION,
    PROVIDERS,
    SECOND,
)

TEXT = (
    pathlib.Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'audit.rst'
).read_text()
# The ids and UUIDs in the examples of the page.
CLASS, OWNER = 10042, 4042
PROVIDER = '7b5f7f4e-3f0a-4d2e-9d52-0d7c1b0c1f6a'
CONSUMER = 'c3a1de44-18fd-4c6d-8a71-6a8e1f3c9a01'

_HEADING = re.compile(r'^(?P<title>[^\n]+)\n=+\n', re.MULTILINE)
_SQL = re.compile(r'^\.\. code-block:: sql\n\n((?:   .*\n|\n)+)', re.MULTILINE)


def sections() -> dict[str, str]:
    """The text of each section by its title."""
    parts = _HEADING.split(TEXT)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def sql(title: str) -> list[list[str]]:
    """The statements of each block of a section."""
    return [
        [statement for statement in textwrap.dedent(block).split(';') if statement.strip()]
        for block in _SQL.findall(sections()[title])
    ]


class PageTest(base.TestCase):
    def test_each_code_has_a_section(self):
        titles = [title for title in sections() if title in model.CODES]
        self.assertEqual(list(model.CODES), titles)


class StatementsTest(base.TestCase):
    def run_block(self, title, number):
        self.execute(*(sa.text(statement) for statement in sql(title)[number]))

    def test_unknown_class(self):
        for number, left in ((0, {}), (1, {'idle-consumer': 1})):
            self.insert_inventory(resource_class_id=CLASS)
            self.insert_consumer(SECOND)
            self.insert_allocation(resource_class_id=CLASS, consumer_id=SECOND)
            self.assertEqual({'unknown-class': 2}, self.found())
            self.run_block('unknown-class', number)
            self.assertEqual(left, self.found())
            self.delete(
                ALLOCATIONS.c.resource_class_id == CLASS,
                models.inventories.c.resource_class_id == CLASS,
                models.resource_classes.c.id == CLASS,
                CONSUMERS.c.uuid == SECOND,
            )

    def test_owner_missing(self):
        """Projects, users and types are created, an existing project is set, or a type removed."""
        self.update(CONSUMERS.c.uuid == INSTANCE, project_id=OWNER, user_id=OWNER)
        self.update(CONSUMERS.c.uuid == MIGRATION, consumer_type_id=OWNER)
        self.assertEqual({'owner-missing': 2}, self.found())
        self.run_block('owner-missing', 0)
        self.assertEqual({}, self.found())
        self.delete(models.consumer_types.c.id == OWNER)
        self.run_block('owner-missing', 2)
        self.assertEqual({}, self.found())

    def test_owner_missing_although_its_project_exists(self):
        self.insert(models.projects, external_id='0c2d3b3f5f8b4d0c9e6f7a8b9c0d1e2f')
        self.put_claim(CONSUMER, {self.host: {'VCPU': 1}})
        self.update(CONSUMERS.c.uuid == CONSUMER, project_id=OWNER)
        self.run_block('owner-missing', 1)
        self.assertEqual({}, self.found())

    def test_parent_cycle(self):
        below = self.make_provider('below', parent=self.node)
        self.update(PROVIDERS.c.uuid == self.host, parent_provider_id=self.id_of(self.node))
        self.update(PROVIDERS.c.uuid == self.node, uuid=PROVIDER)
        self.assertEqual({'parent-cycle': 2}, self.found())
        self.run_block('parent-cycle', 0)
        self.assertEqual({'root-missing': 3}, {c: f.fixed for c, f in self.repair().items()})
        self.assertEqual({}, self.found())
        provider = self.send_ok('GET', f'/resource_providers/{below}')
        self.assertEqual(PROVIDER, provider['root_provider_uuid'])
