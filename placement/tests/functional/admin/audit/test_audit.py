"""Options of the audit, its cost, random links between providers, and concurrent requests."""

import random
from unittest import mock
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.admin import audit
from placement.admin.console import CannotProceedError
from placement.db import engine
from placement.tests import statements, where
from placement.tests.functional import missing_generations
from placement.tests.functional.admin.audit import base
from placement.tests.functional.admin.audit.base import (
    ALLOCATIONS,
    CONSUMERS,
    GONE,
    INSTANCE,
    INVENTORIES,
    MIGRATION,
    PROVIDERS,
    SECOND,
)
from placement.tests.functional.base import claim

# The ids of these providers begin with this number.
FIRST = 1_000


class OptionsTest(base.TestCase):
    def test_codes_and_limits_of_rows(self):
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        self.insert_consumer(SECOND)
        self.assertEqual({'orphan-allocation': 2, 'idle-consumer': 1}, self.found())
        self.assertEqual({'idle-consumer': 1}, self.found(['unused', 'idle-consumer']))
        with mock.patch('placement.admin.audit.model.ROW_LIMIT', 1):
            (finding,) = self.findings(['orphan-allocation'])
        self.assertEqual((2, 1), (finding.count, len(finding.rows)))
        self.assertEqual(['idle-consumer'], list(self.repair('idle-consumer')))
        self.assertEqual({'orphan-allocation': 2}, self.found())

    def test_refused_options(self):
        for only, options, text in (
            (
                ['nonsense', 'unused'],
                {},
                "Unknown code 'nonsense'; the codes are orphan-allocation",
            ),
            (['idle-consumer'], {'purge': True}, 'With --purge, --only must name unused.'),
            (['no-server'], {}, 'needs --servers'),
            (['no-allocations', 'unused'], {}, 'needs --servers'),
            (['unused'], {'servers': 'x.json'}, '--only must name no-server or no-allocations'),
        ):
            error = self.assertRaises(CannotProceedError, self.repair, *only, **options)
            self.assertIn(text, str(error))


class CostTest(base.TestCase):
    def test_the_number_of_statements_does_not_depend_on_the_data(self):
        first = self.count_statements()
        for number in range(3):
            root = self.make_provider(f'root-{number}', {'VCPU': 8})
            leaf = self.make_provider(f'leaf-{number}', {'VCPU': 8}, parent=root)
            self.put_claim(str(uuid.uuid4()), {root: {'VCPU': 1}, leaf: {'VCPU': 1}})
        self.assertEqual(first, self.count_statements())
        self.assertLess(first, 40)

    def count_statements(self):
        with statements.recorded(db_api.get_placement_engine()) as recorded:
            self.assertEqual((), self.findings())
        return len(recorded)

    @where.not_on('sqlite', reason='The in-memory database has one connection.')
    def test_all_checks_use_one_snapshot(self):
        """A change between two checks is not visible to the second check."""
        with engine.snapshot() as conn:
            self.assertEqual((), audit.findings(conn, ['idle-consumer']))
            self.insert_consumer(SECOND)
            self.assertEqual((), audit.findings(conn, ['idle-consumer']))
        self.assertEqual({'idle-consumer': 1}, self.found())


class LinksTest(base.TestCase):
    """Wrong roots, missing parents and cycles in the links between providers."""

    def insert_links(self, rows) -> None:
        """Replace the providers; `rows` are their parents and roots."""
        providers = [
            {
                'id': FIRST + number,
                'uuid': str(uuid.UUID(int=number)),
                'name': f'p{number}',
                'parent_provider_id': None if parent is None else FIRST + parent,
                'root_provider_id': None if root is None else FIRST + root,
                'generation': 0,
            }
            for number, (parent, root) in enumerate(rows)
        ]
        tables = ALLOCATIONS, CONSUMERS, INVENTORIES, PROVIDERS
        self.execute(*map(sa.delete, tables), sa.insert(PROVIDERS).values(providers))

    def test_the_definition(self):
        """Follow the parents of each provider, without a memory of other providers."""
        choose, ids = random.Random(1).choice, [None, None, *range(10)]
        worlds = [[(choose(ids), choose(ids)) for _ in range(8)] for _ in range(30)]
        # A cycle of 0 and 1, 2 below it, a missing parent with a child, and a tree.
        worlds.append([(1, 0), (0, 0), (1, 0), (9, 0), (3, 0), (None, 0), (5, None), (6, 9)])
        codes = 'parent-cycle', 'parent-missing', 'root-missing'
        for rows in worlds:
            exists = range(len(rows)).__contains__
            roots, cyclic, depths = {}, [], {}
            for number in range(len(rows)):
                path = [number]
                while exists(above := rows[path[-1]][0]) and above not in path:
                    path.append(above)
                if not exists(above):
                    roots[number], depths[number] = path[-1], len(path)
                elif above == number:
                    cyclic.append(number)
            orphans = [n for n, (parent, _) in enumerate(rows) if parent in (8, 9)]
            wrong = [n for n in roots if n not in orphans and roots[n] != rows[n][1]]
            wrong.sort(key=lambda n: (depths[n], n))
            expected = {'root-missing': wrong, 'parent-missing': orphans, 'parent-cycle': cyclic}
            self.insert_links(rows)
            found = {one.code: one.rows for one in self.findings(codes)}
            self.assertEqual(
                expected,
                {code: [int(one['provider'][1:]) for one in found.get(code, ())] for code in codes},
                rows,
            )
            true_roots = [str(uuid.UUID(int=roots[number])) for number in wrong]
            found_roots = [one['true_root_provider_uuid'] for one in found.get('root-missing', ())]
            self.assertEqual(true_roots, found_roots, rows)
            self.repair(*codes)
            self.assertEqual({'parent-cycle': len(cyclic)} if cyclic else {}, self.found(codes))
            stored = dict(self.rows(PROVIDERS.c.id, PROVIDERS.c.root_provider_id))
            after = {number: stored[FIRST + number] - FIRST for number in roots}
            self.assertEqual(roots, after, rows)

    def test_a_long_chain(self):
        """The chain is longer than the default limit of the servers for recursive statements."""
        count, database = 1_500, db_api.get_placement_engine()
        for parents in ([None, *range(count - 1)], [*range(1, count), None]):
            self.insert_links([(parent, parent or 0) for parent in parents])
            root = parents.index(None)
            with self.batches_of(400), statements.recorded(database) as recorded:
                self.repair('root-missing')
            # Parents are corrected before their children, so each provider needs one transaction.
            self.assertEqual(4, sum('root_provider_id=CASE' in one.text for one in recorded))
            roots = {row[1] for row in self.rows(PROVIDERS.c.id, PROVIDERS.c.root_provider_id)}
            self.assertEqual({FIRST + root}, roots)


class ConcurrencyTest(base.TestCase):
    """A request changes the rows after they were read, and before they are corrected."""

    def test_links(self):
        """What a request has moved or corrected is not changed, or is corrected afterwards."""
        other = self.make_provider('other')
        node = PROVIDERS.c.uuid == self.node
        host, other_id = self.id_of(self.host), self.id_of(other)
        for change, fixed, root in (
            (lambda: self.update(node, parent_provider_id=other_id), 1, other_id),
            (lambda: self.update(node, parent_provider_id=None), 1, self.id_of(self.node)),
            (lambda: self.update(node, root_provider_id=host), 0, host),
            (
                lambda: self.update(
                    PROVIDERS.c.uuid == self.host,
                    parent_provider_id=other_id,
                    root_provider_id=other_id,
                ),
                1,
                other_id,
            ),
        ):
            self.update(
                PROVIDERS.c.uuid == self.host, parent_provider_id=None, root_provider_id=host
            )
            self.update(node, parent_provider_id=host, root_provider_id=None)
            with self.before_the_first_write(change):
                found = self.repair('root-missing')
            self.assertEqual(fixed, sum(one.fixed for one in found.values()))
            self.assertEqual({}, self.found(['root-missing']))
            ids = dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.root_provider_id))
            self.assertEqual(root, ids[self.node])

    def test_a_provider_that_is_deleted(self):
        leaf = self.make_provider('leaf', parent=self.node)
        self.update(PROVIDERS.c.uuid == leaf, root_provider_id=None)
        with self.before_the_first_write(lambda: self.delete(PROVIDERS.c.uuid == leaf)):
            self.assertEqual({}, self.repair())

    def test_a_generation(self):
        missing_generations.permit_null(self)
        self.update(PROVIDERS.c.uuid == self.node, generation=None)
        used = {self.node: {'VCPU': 1}}
        with self.before_the_first_write(lambda: self.put_claim(SECOND, used)):
            self.assertEqual({}, self.repair())
        self.assertEqual(1, dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.generation))[self.node])

    def test_a_provider_that_is_created(self):
        """SQLite uses the id of a deleted provider again."""
        self.insert_inventory(resource_provider_id=GONE)
        row = {'id': GONE, 'uuid': SECOND, 'name': 'new', 'root_provider_id': GONE}
        with self.before_the_first_write(lambda: self.insert(PROVIDERS, **row)):
            self.assertEqual({}, self.repair())
        self.assertIn((GONE,), self.rows(INVENTORIES.c.resource_provider_id))

    def test_consumers(self):
        """An idle consumer gets allocations, and a missing consumer is created or deleted."""
        self.insert_consumer(SECOND, generation=4)
        body = claim({self.host: {'VCPU': 1}}, 4)
        with self.before_the_first_write(
            lambda: self.send_ok('PUT', f'/allocations/{SECOND}', body)
        ):
            self.assertEqual({}, self.repair())
        expected = [(INSTANCE, 1), (MIGRATION, 1), (SECOND, 5)]
        self.assertEqual(expected, self.rows(CONSUMERS.c.uuid, CONSUMERS.c.generation))
        for change in (
            lambda: self.put_claim(INSTANCE, {self.host: {'VCPU': 1}}),
            lambda: self.delete(
                ALLOCATIONS.c.consumer_id == INSTANCE, CONSUMERS.c.uuid == INSTANCE
            ),
        ):
            self.delete(CONSUMERS.c.uuid == INSTANCE)
            with self.before_the_first_write(change):
                self.assertEqual({}, self.repair('orphan-allocation', 'idle-consumer'))
        self.assertEqual([(MIGRATION,), (SECOND,)], self.rows(CONSUMERS.c.uuid))
        # No owner of missing consumers was created.
        self.assertEqual({}, self.found(['incomplete-consumer']))

    def test_an_interruption_keeps_finished_transactions(self):
        """The transaction that is open when the operator presses Ctrl-C is rolled back."""
        for number in range(10, 15):
            self.insert_consumer(str(uuid.UUID(int=number)))
        original, finished = engine.write, []

        def write(work):
            def then_interrupt(conn):
                finished.append(work(conn))
                if len(finished) == 3:
                    raise KeyboardInterrupt
                return finished[-1]

            return original(then_interrupt)

        with self.batches_of(1), mock.patch.object(engine, 'write', write):
            self.assertRaises(KeyboardInterrupt, self.repair)
        self.assertEqual({'idle-consumer': 3}, self.found())
