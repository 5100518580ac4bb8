"""An export of an import equals the imported file, and an import equals the exported rows."""

import json
from pathlib import Path
import uuid

import sqlalchemy as sa

import placement
from placement.db.sqlalchemy import models
from placement.objects import resource_class, sync
from placement.tests import servers, statements
from placement.tests.functional.admin.transfer import base
from placement.tests.properties import seeds
from placement.tests.unit.admin.transfer import documents

_GUIDE = Path(placement.__file__).parents[1] / 'doc/source/admin/export-example.jsonl'


class RoundTripTest(base.TestCase):
    def test_random_clouds(self):
        for seed in seeds(12):
            with self.subTest(seed=seed):
                servers.delete_all_rows(self.engine)
                self.assertUnchanged(documents.file_of(documents.random_rows(seed)))

    def test_the_example_of_the_guide(self):
        self.assertUnchanged(_GUIDE.read_bytes())
        self.assertEqual(set(documents.KINDS), set(self.counts()))

    def test_an_empty_database(self):
        self.assertEqual(documents.file_of([]), self.export())
        self.load(self.export())
        self.assertEqual({}, self.counts())

    def test_the_example_in_any_spelling(self):
        """The order of fields and the spelling of JSON do not matter."""
        lines = [documents.header(documents.EXAMPLE), *documents.EXAMPLE]
        texts = [json.dumps(dict(reversed(line.items()))).encode() + b' \r\n' for line in lines]
        self.load(b''.join(texts))
        self.assertEqual(base.EXAMPLE.decode(), self.export().decode())

    def test_a_database_with_standard_traits_and_classes_takes_their_times(self):
        self.sync()
        before = self.export()
        self.load(base.EXAMPLE)
        named = {
            line['name']: line for kind in ('resource_class', 'trait') for line in self.lines(kind)
        }
        for name in ('VCPU', 'HW_CPU_X86_AVX2'):
            times = named[name]['created_at'], named[name]['updated_at']
            self.assertEqual(documents.TIMES, times)
        # The standard names that the file does not contain are unchanged.
        unlisted = [line for line in before.splitlines() if b'"DISK_GB"' in line]
        again = self.export()
        self.assertIn(unlisted[0], again.splitlines())
        servers.delete_all_rows(self.engine)
        sync.reset()
        self.sync()
        self.assertUnchanged(again)

    def sync(self) -> None:
        sync.sync_traits()
        sync.sync_resource_classes()

    def test_the_service_can_use_the_database(self):
        self.load(base.EXAMPLE)
        classes, providers = models.resource_classes, models.resource_providers
        with self.engine.connect() as conn:
            ids = dict(conn.execute(sa.select(classes.c.name, classes.c.id)).all())
        self.assertEqual({'VCPU': 0, 'CUSTOM_GPU': 10000}, ids)
        self.sync()
        resource_class.create('CUSTOM_NEW')
        with self.engine.begin() as conn:
            created = conn.execute(
                sa.insert(providers), {'uuid': str(uuid.uuid4()), 'name': 'new', 'generation': 0}
            )
            conn.execute(sa.insert(models.projects), {'external_id': 'new'})
            self.assertGreater(created.inserted_primary_key[0], 3)
            rows = conn.execute(
                sa.select(providers.c.name, providers.c.root_provider_id, providers.c.id)
            )
            root = {name: (root_id, id_) for name, root_id, id_ in rows}
        self.assertEqual(root['gpu'][0], root[documents.NAME][1])
        self.assertEqual(*root['pool'])

    def test_the_longest_texts(self):
        """A file can contain every text that the columns can store."""
        rows = [
            documents.row(kind, 'CUSTOM_'.ljust(column.type.length, 'X'), *others)
            for kind, column, *others in (
                ('resource_class', models.resource_classes.c.name),
                ('trait', models.traits.c.name),
                ('aggregate', models.placement_aggregates.c.uuid),
                ('provider', models.resource_providers.c.uuid, 'n' * 200, 0, None),
                ('consumer_type', models.consumer_types.c.name),
                ('project', models.projects.c.external_id),
                ('user', models.users.c.external_id),
                ('consumer', models.consumers.c.uuid, 0, *['CUSTOM_'.ljust(255, 'X')] * 3),
            )
        ]
        self.assertUnchanged(documents.file_of(rows))

    def test_a_deep_tree(self):
        # By default, MariaDB and MySQL limit recursive statements to 1,000 levels.
        depth = 1010 if self.engine.dialect.name == 'mysql' else 100
        uuids = [f'{number:036}' for number in range(depth)]
        rows = [
            documents.row('provider', uuid, uuid, 0, parent)
            for uuid, parent in zip(uuids, [None, *uuids], strict=False)
        ]
        self.assertUnchanged(documents.file_of(rows))

    def test_statements_do_not_depend_on_the_number_of_rows(self):
        numbers = set()
        for count in (1, 50):
            servers.delete_all_rows(self.engine)
            rows = [
                documents.row(kind, f'CUSTOM_{n:03}')
                for kind in ('resource_class', 'trait', 'consumer_type', 'project', 'user')
                for n in range(count)
            ]
            with statements.recorded(self.engine) as recorded:
                self.assertUnchanged(documents.file_of(rows))
            numbers.add(len(recorded))
        self.assertEqual(1, len(numbers), numbers)


class OverCapacityTest(base.TestCase):
    def test_usage_above_the_capacity_is_imported_and_reported(self):
        # The capacity is 64 * 1.5, and another consumer uses 4.
        for used, expected in ((92, 0), (93, 1)):
            servers.delete_all_rows(self.engine)
            data, _ = documents.edited(documents.change('allocation', 2, used=used))
            self.assertEqual(expected, self.load(data))
            self.assertEqual(data.decode(), self.export().decode())
