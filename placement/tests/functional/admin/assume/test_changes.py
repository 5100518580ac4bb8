"""The private copy, and the changes in it."""

from collections import Counter
from collections.abc import Collection, Iterator
import contextlib
from typing import Any
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.admin import unlisted
from placement.admin.assume import apply, model, private_copy
from placement.admin.failure import CannotProceedError
from placement.admin.progress import silent
from placement.cmd import assume
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.tests import statements, where
from placement.tests.functional import base

PROVIDERS = models.resource_providers
INVENTORIES = models.inventories
ALLOCATIONS = models.allocations
CONSUMERS = models.consumers
UNKNOWN = '7d2c1fa0-5b0c-4f2e-9a83-0f4b5d6f7a10'


class TestCase(base.TestCase):
    @contextlib.contextmanager
    def both(
        self, *changes: str, consumers_of: Collection[int] | None = frozenset()
    ) -> Iterator[tuple[sa.Connection, model.Assumed]]:
        """Yield a snapshot of the database, and the state after the changes."""
        with (
            engine.snapshot() as source,
            apply.assumed(source, assume.parse(changes), silent, consumers_of) as assumed,
        ):
            yield source, assumed

    @contextlib.contextmanager
    def assumed(
        self, *changes: str, consumers_of: Collection[int] | None = frozenset()
    ) -> Iterator[model.Assumed]:
        with self.both(*changes, consumers_of=consumers_of) as (_, assumed):
            yield assumed

    def claim(self, *allocations: tuple[str, dict[str, int]], consumer: str | None = None) -> str:
        """Allocate amounts for a consumer, and return its UUID."""
        consumer = consumer or str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{consumer}', base.claim(dict(allocations)))
        return consumer

    def refusal(self, *changes: str) -> str:
        """Return the reason why the last change is refused."""
        with (
            self.assertRaisesRegex(CannotProceedError, '^The assumption ') as caught,
            self.assumed(*changes),
        ):
            pass
        _, _, reason = str(caught.exception).partition(f"'{changes[-1]}' is not valid: ")
        return reason


def rows(conn: sa.Connection, table: sa.Table) -> list[Any]:
    """Return the rows that the copy contains, in the order of their values."""
    return sorted(map(tuple, conn.execute(sa.select(*private_copy.columns(table)))), key=repr)


def usages(conn: sa.Connection) -> Counter[tuple[str, int]]:
    """Return (provider, class id) -> usage."""
    found: Counter[tuple[str, int]] = Counter()
    for name, class_id, used in conn.execute(
        sa.select(PROVIDERS.c.name, ALLOCATIONS.c.resource_class_id, ALLOCATIONS.c.used).join(
            ALLOCATIONS, ALLOCATIONS.c.resource_provider_id == PROVIDERS.c.id
        )
    ):
        found[name, class_id] += used
    return found


def consumers(conn: sa.Connection) -> dict[str, tuple[int, list[int]]]:
    """Return the UUID of each consumer -> its generation, and its allocated amounts."""
    found = {}
    for one, generation in conn.execute(sa.select(CONSUMERS.c.uuid, CONSUMERS.c.generation)):
        amounts = sa.select(ALLOCATIONS.c.used).where(ALLOCATIONS.c.consumer_id == one)
        found[one] = (generation, sorted(conn.scalars(amounts)))
    return found


class CopyTest(TestCase):
    """The copy has the rows of the source."""

    def setUp(self) -> None:
        super().setUp()
        self.a = self.make_provider('a', {'VCPU': 8, 'MEMORY_MB': 64})
        self.b = self.make_provider('b', {'VCPU': 8})
        self.child = self.make_provider('c', {'VGPU': 8}, parent=self.b)
        self.on_a = self.claim((self.a, {'VCPU': 1, 'MEMORY_MB': 8}))
        self.on_both = self.claim((self.a, {'VCPU': 2}), (self.child, {'VGPU': 2}))
        self.on_b = self.claim((self.b, {'VCPU': 4}), (self.child, {'VGPU': 1}))
        self.send_ok('PUT', '/traits/CUSTOM_A')

    def root_ids(self, *names: str) -> list[int]:
        with engine.snapshot() as conn:
            return list(conn.scalars(sa.select(PROVIDERS.c.id).where(PROVIDERS.c.name.in_(names))))

    def test_without_changes_the_command_reads_the_database(self):
        with engine.snapshot() as source, apply.assumed(source, (), silent) as assumed:
            self.assertEqual(model.Assumed(source, (), {}), assumed)

    def test_providers_and_usage(self):
        with self.both('trait:-CUSTOM_A') as (source, assumed):
            for table in (
                models.resource_classes,
                models.traits,
                models.placement_aggregates,
                PROVIDERS,
                INVENTORIES,
                models.resource_provider_traits,
                models.resource_provider_aggregates,
            ):
                self.assertEqual(rows(source, table), rows(assumed.conn, table), table.name)
            self.assertEqual(usages(source), usages(assumed.conn))
            self.assertEqual({}, consumers(assumed.conn))
            owners = set(assumed.conn.scalars(sa.select(ALLOCATIONS.c.consumer_id)))
            self.assertEqual({private_copy.OTHERS}, owners)
            self.assertEqual(('trait:-CUSTOM_A',), assumed.changes)

    def test_consumers_of_trees(self):
        roots = self.root_ids('b')
        with self.both('trait:-CUSTOM_A', consumers_of=roots) as (source, assumed):
            expected = {key: value for key, value in consumers(source).items() if key != self.on_a}
            self.assertEqual({self.on_both, self.on_b}, expected.keys())
            self.assertEqual(expected, consumers(assumed.conn))
            self.assertEqual(usages(source), usages(assumed.conn))
            for table in (models.projects, models.users, models.consumer_types):
                self.assertEqual(rows(source, table), rows(assumed.conn, table), table.name)

    def test_all_consumers(self):
        with self.both('trait:-CUSTOM_A', consumers_of=None) as (source, assumed):
            for table in (CONSUMERS, ALLOCATIONS, models.projects, models.users):
                self.assertEqual(rows(source, table), rows(assumed.conn, table), table.name)

    def test_the_source_is_only_read(self):
        def texts() -> list[str]:
            with (
                statements.recorded(db_api.get_placement_engine()) as recorded,
                self.assumed(
                    'copies:2*a', 'set:VCPU.total=4', f'aggregate:+{UNKNOWN}', 'without:b'
                ),
            ):
                pass
            return [statement.text for statement in recorded]

        before = texts()
        self.assertEqual({'SELECT'}, {text.split(None, 1)[0] for text in before})
        self.assertNotIn('FOR UPDATE', ' '.join(before))
        for number in range(5):
            self.claim((self.make_provider(f'more-{number}', {'VCPU': 1}), {'VCPU': 1}))
        self.assertEqual(before, texts())

    def test_providers_without_a_root(self):
        values = {'uuid': str(uuid.uuid4()), 'name': None}
        with db_api.get_placement_engine().begin() as conn:
            conn.execute(sa.insert(PROVIDERS).values(root_provider_id=None, **values))
        with self.assumed('without:a') as assumed:
            self.assertEqual(1, assumed.conn.scalar(unlisted.COUNT))
        self.assertIn('has no root', self.refusal(f'without:{values["uuid"]}'))


def providers_with(conn: sa.Connection, table: sa.Table) -> list[str]:
    """Return the names of the providers with a trait or an aggregate."""
    statement = sa.select(PROVIDERS.c.name).join(
        table, table.c.resource_provider_id == PROVIDERS.c.id
    )
    return sorted(conn.scalars(statement))


def totals(conn: sa.Connection, field: str = 'total') -> dict[str, Any]:
    """Return the name of each provider -> the field of its inventory of VCPU."""
    statement = (
        sa.select(PROVIDERS.c.name, INVENTORIES.c[field])
        .join(INVENTORIES, INVENTORIES.c.resource_provider_id == PROVIDERS.c.id)
        .where(INVENTORIES.c.resource_class_id == 0)
    )
    return {row[0]: row[1] for row in conn.execute(statement)}


class SourceTest(TestCase):
    """What the database of the service decides."""

    def setUp(self) -> None:
        super().setUp()
        self.a = self.make_provider('a', {'VCPU': 8})
        self.b = self.make_provider('b', {'VCPU': 8})

    def test_the_source_decides_which_names_are_equal(self):
        self.make_provider('A-COPY-1')
        with engine.snapshot() as source:
            same = sa.select(PROVIDERS.c.id).where(PROVIDERS.c.name == 'a-copy-1')
            equal = source.scalar(same)
        if equal:
            reason = "The name 'A-COPY-1' is taken."
            self.assertEqual(reason, self.refusal('copies:1*a'))
        with self.assumed('without:A-COPY-1', 'copies:1*a'):
            pass

    def test_the_ratio_is_that_which_the_database_would_store(self):
        for text in ('1.23456789', '8', '0.7', '3.40282e38', '16777217', '2.0000005'):
            path = f'/resource_providers/{self.a}/inventories/VCPU'
            body = self.send_ok('GET', path)
            self.send_ok('PUT', path, {**body, 'allocation_ratio': float(text)})
            stored = self.send_ok('GET', path)['allocation_ratio']
            with self.assumed(f'set:VCPU.allocation_ratio={text}') as assumed:
                ratios = totals(assumed.conn, 'allocation_ratio')
            self.assertEqual({'a': stored, 'b': stored}, ratios)

    def test_an_aggregate_that_exists(self):
        path = f'/resource_providers/{self.a}/aggregates'
        generation = self.send_ok('GET', path)['resource_provider_generation']
        body = {'aggregates': [UNKNOWN], 'resource_provider_generation': generation}
        self.send_ok('PUT', path, body)
        with engine.snapshot() as source:
            ids = list(source.scalars(sa.select(models.placement_aggregates.c.id)))
        with self.assumed(f'aggregate:+{UNKNOWN}?name=b') as assumed:
            stored = assumed.conn.scalars(sa.select(models.placement_aggregates.c.id))
            self.assertEqual(ids, list(stored))
            table = models.resource_provider_aggregates
            self.assertEqual(['a', 'b'], providers_with(assumed.conn, table))


@where.only_on('sqlite', reason='The changes are made in a database in memory.')
class TreeTest(TestCase):
    """`without` and `copies`."""

    def setUp(self) -> None:
        super().setUp()
        self.host = self.make_provider('host', {'VCPU': 8})
        self.child = self.make_provider('child', {'VGPU': 4}, parent=self.host)
        self.other = self.make_provider('other', {'VCPU': 8})

    def test_without_a_tree(self):
        gone = self.claim((self.host, {'VCPU': 1}), (self.child, {'VGPU': 1}))
        stays = self.claim((self.other, {'VCPU': 3}))
        partly = self.claim((self.child, {'VGPU': 2}), (self.other, {'VCPU': 2}))
        for text in ('without:child', f'without:{self.host}', f'without:{self.child.upper()}'):
            with self.assumed(text, consumers_of=None) as assumed:
                conn = assumed.conn
                self.assertEqual(['other'], list(conn.scalars(sa.select(PROVIDERS.c.name))))
                self.assertEqual(1, len(rows(conn, INVENTORIES)))
                self.assertEqual({partly: (2, [2]), stays: (1, [3])}, consumers(conn))
                self.assertEqual({}, assumed.over)
            with self.assumed(text) as assumed:
                self.assertEqual([5], list(usages(assumed.conn).values()))
        self.assertIn(gone, consumers_of_source())

    def test_copies_of_a_tree(self):
        path = f'/resource_providers/{self.child}'
        self.send_ok('PUT', '/traits/CUSTOM_A')
        self.send_ok(
            'PUT', f'{path}/traits', {'traits': ['CUSTOM_A'], 'resource_provider_generation': 1}
        )
        body = {'aggregates': [UNKNOWN], 'resource_provider_generation': 2}
        self.send_ok('PUT', f'{path}/aggregates', body)
        self.claim((self.child, {'VGPU': 2}))
        with self.assumed('copies:2*child', consumers_of=None) as assumed:
            conn = assumed.conn
            listed = {row.name: row for row in conn.execute(sa.select(PROVIDERS))}
            names = [
                *('host', 'child', 'other'),
                *('host-copy-1', 'child-copy-1', 'host-copy-2', 'child-copy-2'),
            ]
            self.assertEqual(names, sorted(listed, key=lambda name: listed[name].id))
            for number in (1, 2):
                root, child = listed[f'host-copy-{number}'], listed[f'child-copy-{number}']
                self.assertEqual((root.id, None), (root.root_provider_id, root.parent_provider_id))
                self.assertEqual(
                    (root.id, root.id), (child.root_provider_id, child.parent_provider_id)
                )
                expected = str(uuid.uuid5(uuid.UUID(self.child), f'copy-{number}'))
                self.assertEqual(expected, child.uuid)
            for table, count in (
                (INVENTORIES, 3 + 4),
                (models.resource_provider_traits, 1 + 2),
                (models.resource_provider_aggregates, 1 + 2),
                (ALLOCATIONS, 1),
            ):
                self.assertEqual(count, len(rows(conn, table)), table.name)

    def test_a_copy_of_a_copy(self):
        changes = ('copies:2*host', 'without:host-copy-1', 'copies:1*host-copy-2')
        with self.assumed(*changes, 'copies:1*host') as assumed:
            names = assumed.conn.scalars(sa.select(PROVIDERS.c.name)).all()
        self.assertEqual(3 + 3 * 2, len(names))
        self.assertIn('child-copy-2-copy-1', names)

    def test_names_that_are_taken(self):
        reason = "The name 'host-copy-1' is taken."
        self.assertEqual(reason, self.refusal('copies:1*host', 'copies:2*host'))
        taken = self.make_provider('child-copy-2')
        self.assertEqual("The name 'child-copy-2' is taken.", self.refusal('copies:2*host'))
        for changes in (['copies:1*host'], [f'without:{taken}', 'copies:2*host']):
            with self.assumed(*changes):
                pass
        copied = str(uuid.uuid5(uuid.UUID(self.other), 'copy-1'))
        self.send_ok('POST', '/resource_providers', {'name': 'x', 'uuid': copied})
        self.assertEqual(f"The uuid '{copied}' is taken.", self.refusal('copies:1*other'))

    def test_names_that_are_too_long(self):
        self.make_provider('n' * 193)
        with self.assumed(f'copies:1*{"n" * 193}'):
            pass
        self.make_provider('m' * 194)
        reason = self.refusal(f'copies:1*{"m" * 194}')
        self.assertEqual(f"The name '{'m' * 194}-copy-1' is longer than 200 characters.", reason)

    def test_an_invalid_uuid(self):
        self.update_other(uuid='none')
        self.assertEqual("The stored UUID 'none' is not valid.", self.refusal('copies:1*none'))

    def test_a_provider_without_a_root(self):
        own_id = models.resource_providers.c.id
        for values in (
            {'root_provider_id': None},
            {'root_provider_id': 9_000_001},
            {'root_provider_id': own_id, 'parent_provider_id': own_id},
        ):
            self.update_other(**values)
            for text in ('other', self.other, self.other.upper()):
                reason = (
                    f"The resource provider '{text}' has no root. Run `placement-manage audit "
                    '--only root-missing,parent-cycle`.'
                )
                self.assertEqual(reason, self.refusal(f'without:{text}'))
                self.assertEqual(reason, self.refusal(f'copies:1*{text}'))

    def test_a_name_that_is_the_uuid_of_another_provider(self):
        self.update_other(name=self.child)
        with self.assumed(f'without:{self.child}') as assumed:
            self.assertEqual([self.other], list(assumed.conn.scalars(sa.select(PROVIDERS.c.uuid))))

    def update_other(self, **values: Any) -> None:
        """Change the row of the provider `other`."""
        with db_api.get_placement_engine().begin() as conn:
            conn.execute(sa.update(PROVIDERS).where(PROVIDERS.c.uuid == self.other).values(values))

    def test_unknown_providers(self):
        for text in ('nothing', UNKNOWN, 'HOSTS', 'none'):
            reason = f"No resource provider has the name or the UUID '{text}'."
            self.assertEqual(reason, self.refusal(f'without:{text}'))
            self.assertEqual(reason, self.refusal(f'copies:1*{text}'))
        self.assertIn('No resource provider', self.refusal('without:host', 'without:child'))


@where.only_on('sqlite', reason='The changes are made in a database in memory.')
class ProviderTest(TestCase):
    """`set`, `trait`, and `aggregate`."""

    def setUp(self) -> None:
        super().setUp()
        self.a = self.make_provider('a', {'VCPU': 8, 'DISK_GB': 100})
        self.b = self.make_provider('b', {'VCPU': 16})
        self.c = self.make_provider('c', {'DISK_GB': 100})
        self.send_ok('PUT', '/traits/CUSTOM_A')

    def test_fields(self):
        for field, value in (
            ('total', 4),
            ('reserved', 3),
            ('min_unit', 2),
            ('max_unit', 3),
            ('step_size', 4),
            ('allocation_ratio', 2.5),
        ):
            with self.assumed(f'set:VCPU.{field}={value}') as assumed:
                self.assertEqual({'a': value, 'b': value}, totals(assumed.conn, field))
        with self.assumed('set:VCPU.total=4?resources=DISK_GB:1') as assumed:
            self.assertEqual({'a': 4, 'b': 16}, totals(assumed.conn))

    def test_a_filter_is_judged_when_its_turn_comes(self):
        changes = (
            'set:VCPU.total=20?resources=VCPU:10',
            'set:VCPU.min_unit=2?resources=VCPU:20',
            'trait:+CUSTOM_A?resources=VCPU:10',
            'set:VCPU.total=1?required=CUSTOM_A',
            'trait:-CUSTOM_A?in_tree=' + self.b,
            'without:a',
        )
        with self.assumed(*changes) as assumed:
            self.assertEqual({'b': 1}, totals(assumed.conn))
            self.assertEqual([], providers_with(assumed.conn, models.resource_provider_traits))
        reason = self.refusal(*changes, 'trait:+CUSTOM_A?name=a')
        self.assertEqual('No resource provider matches the filter.', reason)

    def test_traits_and_aggregates(self):
        for change, table in (
            ('trait:{}CUSTOM_A', models.resource_provider_traits),
            (f'aggregate:{{}}{UNKNOWN}', models.resource_provider_aggregates),
        ):
            add, remove = change.format('+'), change.format('-')
            with self.assumed(f'{add}?name=a', add, f'{remove}?uuid={self.b}') as assumed:
                self.assertEqual(['a', 'c'], providers_with(assumed.conn, table))
            with self.assumed(remove) as assumed:
                self.assertEqual([], providers_with(assumed.conn, table))

    def test_a_change_that_alters_nothing(self):
        for change in ('set:VGPU.total=1', 'set:VCPU.total=1?name=c', f'aggregate:-{UNKNOWN}'):
            with self.assumed(change) as assumed:
                self.assertEqual({'a': 8, 'b': 16}, totals(assumed.conn))

    def test_refusals(self):
        for change, reason in (
            ('set:CUSTOM_NO.total=1', 'Unknown resource class: No such resource class CUSTOM_NO.'),
            ('trait:+CUSTOM_NO', 'No such trait: CUSTOM_NO.'),
            ('trait:-CUSTOM_NO', 'No such trait: CUSTOM_NO.'),
            ('trait:+CUSTOM_A?required=CUSTOM_NO', 'No such trait: CUSTOM_NO.'),
            ('trait:+CUSTOM_A?resources=NO:1', 'Unknown resource class: No such resource class NO'),
            ('trait:+CUSTOM_A?name=x', 'No resource provider matches the filter.'),
            (f'trait:+CUSTOM_A?member_of={UNKNOWN}', 'No resource provider matches the filter'),
            (
                'set:VCPU.reserved=9',
                f"Invalid inventory for 'VCPU' on resource provider '{self.a}'",
            ),
            ('set:VCPU.allocation_ratio=-1', "Invalid inventory for 'VCPU'"),
        ):
            self.assertIn(reason, self.refusal('set:VCPU.step_size=1', change))
        with self.assumed('set:VCPU.reserved=8'):
            pass

    def test_usage_above_the_capacity(self):
        self.claim((self.a, {'VCPU': 5, 'DISK_GB': 90}))
        self.claim((self.b, {'VCPU': 7}))
        for changes, over in (
            (('set:VCPU.total=8',), {}),
            (('set:VCPU.total=6',), {'VCPU': model.Over(1, 1)}),
            (
                ('set:VCPU.total=6', 'set:DISK_GB.reserved=90', 'set:VCPU.allocation_ratio=0.25'),
                {'DISK_GB': model.Over(1, 80), 'VCPU': model.Over(2, 4 + 6)},
            ),
            (('set:VCPU.total=1', 'set:VCPU.total=8'), {}),
            (('set:VCPU.total=1', 'without:a', 'copies:3*b'), {'VCPU': model.Over(1, 6)}),
        ):
            with self.assumed(*changes) as assumed:
                self.assertEqual(over, assumed.over)
        # Only the part that the changes make is reported.
        with db_api.get_placement_engine().begin() as conn:
            conn.execute(sa.update(INVENTORIES).values(total=4))
        with self.assumed('set:VCPU.total=3?name=a') as assumed:
            self.assertEqual({'VCPU': model.Over(1, 1)}, assumed.over)


def consumers_of_source() -> dict[str, tuple[int, list[int]]]:
    with engine.snapshot() as source:
        return consumers(source)
