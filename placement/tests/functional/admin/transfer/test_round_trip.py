"""An export of an import equals the imported file, and an import equals the exported rows."""

import io
import json
from pathlib import Path
import uuid

import ddt
import sqlalchemy as sa

import placement
from placement.admin.transfer import load
from placement.admin.transfer.pseudonyms import Pseudonyms
from placement.db.sqlalchemy import models
from placement.objects import resource_class, sync
from placement.tests import servers, statements
from placement.tests.functional.admin.transfer import base
from placement.tests.properties import seeds
from placement.tests.unit.admin.transfer import documents

_SEEDS = seeds(12)
_EXAMPLE = Path(placement.__file__).parents[1] / 'doc/source/admin/export-example.jsonl'


def random_file(seed: int) -> bytes:
    return documents.file_of(documents.random_rows(seed))


@ddt.ddt
class RoundTripTest(base.TestCase):
    def test_a_cloud_with_all_kinds_of_rows(self):
        data = documents.file_of(documents.EXAMPLE)
        self.load(data)
        self.assertEqual(data.decode(), self.export().decode())

    def test_random_clouds(self):
        for seed in _SEEDS:
            with self.subTest(seed=seed):
                servers.delete_all_rows(self.engine)
                data = random_file(seed)
                self.load(data)
                self.assertEqual(data.decode(), self.export().decode())

    def test_the_example_of_the_guide(self):
        data = _EXAMPLE.read_bytes()
        self.load(data)
        self.assertEqual(data.decode(), self.export().decode())
        self.assertEqual(set(documents.KINDS), set(self.counts()))

    def test_an_empty_database(self):
        self.assertEqual(documents.file_of([]), self.export())
        self.load(self.export())
        self.assertEqual({}, self.counts())

    def test_a_database_with_standard_traits_and_classes_takes_their_times(self):
        sync.sync_traits()
        sync.sync_resource_classes()
        before = self.export()
        self.load(documents.file_of(documents.EXAMPLE))
        lines = [json.loads(line) for line in self.export().splitlines()[1:]]
        named = {line.get('name'): line for line in lines if line['kind'] != 'provider'}
        for name in ('VCPU', 'HW_CPU_X86_AVX2'):
            self.assertEqual(documents.TIMES, {key: named[name][key] for key in documents.TIMES})
        # The standard names that the file does not contain are unchanged.
        unlisted = [line for line in before.splitlines() if b'"DISK_GB"' in line]
        self.assertIn(unlisted[0], self.export().splitlines())
        again = self.export()
        servers.delete_all_rows(self.engine)
        sync.reset()
        sync.sync_traits()
        sync.sync_resource_classes()
        self.load(again)
        self.assertEqual(again.decode(), self.export().decode())

    def test_ids_of_classes_are_those_of_the_service(self):
        self.load(documents.file_of(documents.EXAMPLE))
        classes = models.resource_classes
        with self.engine.connect() as conn:
            ids = dict(conn.execute(sa.select(classes.c.name, classes.c.id)).all())
        self.assertEqual({'VCPU': 0, 'CUSTOM_GPU': 10000}, ids)

    def test_the_service_can_use_the_database(self):
        self.load(documents.file_of(documents.EXAMPLE))
        sync.sync_traits()
        sync.sync_resource_classes()
        resource_class.create('CUSTOM_NEW')
        providers = models.resource_providers
        with self.engine.begin() as conn:
            created = conn.execute(
                sa.insert(providers), {'uuid': str(uuid.uuid4()), 'name': 'new', 'generation': 0}
            )
            conn.execute(sa.insert(models.projects), {'external_id': 'new'})
            self.assertGreater(created.inserted_primary_key[0], 3)
            roots = conn.execute(
                sa.select(providers.c.name, providers.c.root_provider_id, providers.c.id).where(
                    providers.c.name != 'new'
                )
            )
            root = {name: (root_id, id_) for name, root_id, id_ in roots}
        self.assertEqual(root['gpu'][0], root[documents.EXAMPLE[5]['name']][1])
        self.assertEqual(*root['pool'])

    def test_a_deep_tree(self):
        # By default, MariaDB and MySQL limit recursive statements to 1,000 levels.
        depth = 1010 if self.engine.dialect.name == 'mysql' else 100
        uuids = [f'{number:036}' for number in range(depth)]
        rows = [
            {
                'kind': 'provider',
                'uuid': uuid,
                'name': uuid,
                'generation': 0,
                'parent': parent,
                **documents.TIMES,
            }
            for uuid, parent in zip(uuids, [None, *uuids], strict=False)
        ]
        data = documents.file_of(rows)
        self.load(data)
        self.assertEqual(data, self.export())

    def test_statements_do_not_depend_on_the_number_of_rows(self):
        numbers = {}
        for seed in (1, 2, 3):
            servers.delete_all_rows(self.engine)
            rows = [row for row in documents.random_rows(seed) if row['kind'] != 'provider']
            rows = [row for row in rows if not {'provider', 'consumer'} & row.keys()]
            rows = [row for row in rows if row['kind'] != 'consumer']
            with statements.recorded(self.engine) as recorded:
                self.load(documents.file_of(rows))
                self.export()
            numbers[len(recorded)] = len(rows)
        self.assertEqual(1, len(numbers), numbers)

    @ddt.data(b'', b'secret')
    def test_an_anonymous_export_can_be_imported(self, key):
        for seed in _SEEDS[:3]:
            servers.delete_all_rows(self.engine)
            self.load(random_file(seed))
            rows = documents.random_rows(seed)
            names = {row['name'] for row in rows if row['kind'] == 'provider'} - {None}
            names |= {row[key] for row in rows for key in ('external_id',) if key in row}
            names |= {
                row['name'] for row in rows if (row.get('name') or '').startswith('CUSTOM_')
            } | {'A_B'}
            anonymous = self.export(Pseudonyms(key))
            self.assertEqual(anonymous, self.export(Pseudonyms(key)))
            for name in names:
                self.assertNotIn(json.dumps(name, ensure_ascii=False).encode(), anonymous)
            servers.delete_all_rows(self.engine)
            self.load(anonymous)
            self.assertEqual(anonymous.decode(), self.export().decode())
            self.assertEqual(len(rows) + 1, anonymous.count(b'\n'))


class OverCapacityTest(base.TestCase):
    def test_usage_above_the_capacity_is_imported_and_reported(self):
        edit = documents.change('allocation', 2, used=93)
        data, _ = documents.edited(edit)  # 97 of 64 * 1.5
        exceeded = self.load(data)
        self.assertEqual(1, exceeded.count)
        (inventory,) = exceeded.first
        self.assertEqual(
            (documents.HOST, 'VCPU', 97, 96.0),
            (inventory.provider, inventory.resource_class, inventory.used, inventory.capacity),
        )
        self.assertEqual(data.decode(), self.export().decode())

    def test_usage_of_the_whole_capacity_is_not_reported(self):
        data, _ = documents.edited(documents.change('allocation', 2, used=92))
        self.assertEqual(0, self.load(data).count)


class ProgressTest(base.TestCase):
    def test_the_progress_ends_with_the_number_of_rows(self):
        seen = []

        class Recorder:
            def __init__(self, label, total):
                seen.append((label, total))

            def __enter__(self):
                return seen.append

            def __exit__(self, *_):
                pass

        data = documents.file_of(documents.EXAMPLE)
        header, _ = load.load(io.BytesIO(data), Recorder)
        self.assertEqual(('Importing', len(documents.EXAMPLE)), seen[0])
        self.assertEqual(len(documents.EXAMPLE), sum(seen[1:]))
        self.assertEqual(1, header.counts['project'])
