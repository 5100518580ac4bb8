"""The option `--assume`: the result is the result after the same changes through the API.

The environment variable PLACEMENT_TEST_ASSUME sets the seeds, for example 0-500.
"""

from collections import Counter
from collections.abc import Sequence
import json
import os
import pathlib
import random
from typing import Any
import uuid

import ddt
import fixtures
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import servers, statements, where, worlds
from placement.tests.functional import base, in_process
from placement.tests.functional.admin import assumed_requests
from placement.tests.properties import Seeds
from placement.tests.worlds import random_changes, rows, seeded

# On a server, the same statements only have to be valid there.
SEEDS = Seeds('PLACEMENT_TEST_ASSUME', '6-12' if servers.ADMIN_URL in os.environ else '0-32')
QUERIES = 2
UNKNOWN = '7d2c1fa0-5b0c-4f2e-9a83-0f4b5d6f7a10'
Usages = dict[tuple[str, str], int]


def options(changes: Sequence[str]) -> list[str]:
    return [word for change in changes for word in ('--assume', change)]


class RandomWorldsTest(base.WorldTestCase, in_process.Commands):
    def test_assumed_results_are_those_after_requests(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            rng = random.Random(seed)
            queries = [seeded.search(rng)]
            world = queries[0].world
            queries += [seeded.query(rng, world) for _ in range(QUERIES - 1)]
            changes = random_changes.changes(rng, world)
            with self.subTest(seed=seed, changes=changes):
                self._fill(rng, world)
                counts += self._compare(queries, changes)
        SEEDS.show(counts)
        self.assertGreater(2 * counts['changed'], counts['queries'])
        self.assertGreater(counts['queries'], len(SEEDS.range))
        if len(SEEDS.range) > 20:
            self.assertLess({'without', 'copies', 'set', 'trait', 'aggregate'}, counts.keys())

    def _fill(self, rng: random.Random, world: worlds.World) -> None:
        """Replace the contents of the database by a world, in which three consumers have the usage.

        A consumer has allocations on several providers, also of several trees.
        """
        allocations: list[dict[str, dict[str, int]]] = [{}, {}, {}]
        for (provider, name), used in world.other_usage.items():
            rng.choice(allocations).setdefault(provider, {})[name] = used
        consumers = [
            worlds.Consumer(f'consumer {n}', one) for n, one in enumerate(allocations) if one
        ]
        rows.fill(db_api.get_placement_engine(), worlds.World(world.hosts, tuple(consumers)))

    def _compare(self, queries: Sequence[seeded.Search], changes: Sequence[str]) -> Counter[str]:
        before, exceeded = self._results(queries), self._exceeded()
        refused = in_process.run('explain', 'resources=VCPU:1', *options(changes)).status == 2
        if refused:
            self.assertRaises(assumed_requests.RefusedError, self._change, changes)
            return Counter(['refused'])
        assumed = self._results(queries, *options(changes))
        self._change(changes)
        added = {'assumptions': list(changes), 'over': self._over(exceeded)}
        after = self._results(queries)
        for query, found, expected in zip(queries, assumed, after, strict=True):
            self.assertEqual([one | added for one in expected], found, query)
        changed = sum(one != other for one, other in zip(before, after, strict=True))
        kinds = Counter(change.partition(':')[0] for change in changes)
        return kinds + Counter(queries=len(queries), changed=changed)

    def _results(self, queries: Sequence[seeded.Search], *arguments: str) -> list[Any]:
        """Return what explain and headroom print for each query."""
        results = []
        for query in queries:
            words = (query.world.query(query.text), '--microversion', str(query.version))
            found = []
            for command in (('explain',), ('headroom', '--by', 'aggregate')):
                done = in_process.run(*command, *words, '--format', 'json', *arguments)
                document = json.loads(done.stdout)
                found += document if isinstance(document, list) else [document]
            results.append(found)
        return results

    def _change(self, changes: Sequence[str]) -> None:
        for change in changes:
            assumed_requests.change(self, change)

    def _over(self, before: Usages) -> dict[str, Any]:
        over: dict[str, Any] = {}
        for (provider, class_name), amount in self._exceeded().items():
            more = amount - before.get((provider, class_name), 0)
            if more > 0:
                of_class = over.setdefault(class_name, {'inventories': 0, 'amount': 0})
                of_class['inventories'] += 1
                of_class['amount'] += more
        return over

    def _exceeded(self) -> Usages:
        """Return (provider, class) -> usage above the capacity, as the API returns them."""
        exceeded = {}
        for provider in self.send_ok('GET', '/resource_providers')['resource_providers']:
            path = f'/resource_providers/{provider["uuid"]}'
            usages = self.send_ok('GET', f'{path}/usages')['usages']
            for name, one in self.send_ok('GET', f'{path}/inventories')['inventories'].items():
                capacity = int((one['total'] - one['reserved']) * one['allocation_ratio'])
                if usages[name] > capacity:
                    exceeded[provider['uuid'], name] = usages[name] - capacity
        return exceeded


FORMS = 'It has none of the forms without:PROVIDER, copies:N*PROVIDER'
FIELD = 'It does not have the form set:CLASS.FIELD=VALUE, where FIELD is total, reserved'
COPIES = 'It does not have the form copies:N*PROVIDER, with N from 1 to 999999.'
TRAIT = 'It does not have the form trait:+NAME or trait:-NAME.'
TAKEN = ('set:VCPU.step_size=1', 'copies:1*a')


class TestCase(base.TestCase, in_process.Commands):
    def setUp(self) -> None:
        super().setUp()
        self.a = self.make_provider('a', {'VCPU': 8, 'DISK_GB': 100})
        self.b = self.make_provider('b?*=:', {'VCPU': 16})
        self.child = self.make_provider('child', {'VGPU': 4}, parent=self.b)
        self.send_ok('PUT', '/traits/CUSTOM_A')

    def fits(self, *changes: str, query: str = 'resources=VCPU:1') -> int:
        done = in_process.run('headroom', query, '--format', 'json', *options(changes))
        (found,) = json.loads(done.stdout)
        return int(found['fits'])


class SourceTest(TestCase):
    """What the database of the service decides."""

    def test_the_database_decides_which_names_are_equal(self):
        self.make_provider('A-COPY-1')
        table = models.resource_providers
        with db_api.get_placement_engine().connect() as conn:
            equal = conn.scalar(sa.select(table.c.id).where(table.c.name == 'a-copy-1'))
        done = in_process.run('headroom', 'resources=VCPU:1', '--assume', 'copies:1*a')
        self.assertEqual(bool(equal), done.status == 2)
        self.assertEqual(bool(equal), "The name 'A-COPY-1' is taken." in done.stderr)
        self.assertEqual(24 + 8, self.fits('without:A-COPY-1', 'copies:1*a'))

    def test_the_ratio_is_that_which_the_database_would_store(self):
        path = f'/resource_providers/{self.b}/inventories/VCPU'
        for text in ('1.23456789', '8', '0.7', '16777217', '2.0000005'):
            change = f'set:VCPU.allocation_ratio={text}?uuid={self.b}'
            assumed = self.fits('set:VCPU.total=100000000', 'without:a', change)
            body = self.send_ok('GET', path)
            body |= {'total': 10**8, 'allocation_ratio': float(text)}
            self.send_ok('PUT', path, body)
            self.assertEqual(assumed, self.fits('without:a'))

    def test_the_database_is_only_read(self):
        changes = ('copies:2*a', 'set:VCPU.total=4', f'aggregate:+{UNKNOWN}', 'without:child')
        numbers = []
        for more in range(2):
            with statements.recorded(db_api.get_placement_engine()) as recorded:
                self.fits(*changes)
            numbers.append(len(recorded))
            self.assertEqual({'SELECT'}, {one.text.split(None, 1)[0] for one in recorded})
            self.assertNotIn('FOR UPDATE', ' '.join(one.text for one in recorded))
            for number in range(5):
                self.make_provider(f'more-{more}-{number}', {'VCPU': 1})
        self.assertEqual(*numbers)


@where.only_on('sqlite', reason='The changes are made in a database in memory.')
@ddt.ddt
class ExamplesTest(TestCase):
    @ddt.data(
        # All changes apply in the order of the command line.
        (8 + 5 * 16, 'copies:2*child', 'copies:2*b?*=:-copy-1'),
        (0, 'set:VCPU.min_unit=2.0'),
        # As in the newest microversion, the whole inventory can be reserved.
        (16, 'set:VCPU.reserved=8?name=a'),
        (8, 'set:VCPU.step_size=2147483647?name=b%3F*%3D:', 'set:VCPU.max_unit=1e3'),
        (
            20,
            'set:VCPU.total=20?resources=VCPU:10',
            'set:VCPU.min_unit=2?resources=VCPU:1,DISK_GB:1',
        ),
        (2, 'trait:+CUSTOM_A', 'set:VCPU.total=2?required=CUSTOM_A&name=a', 'without:child'),
        (
            8,
            f'aggregate:+{UNKNOWN}?name=a',
            f'set:VCPU.total=1?member_of=!{UNKNOWN}',
            'without:b?*=:',
        ),
        (24, f'aggregate:+{UNKNOWN.upper()}', f'aggregate:-{UNKNOWN.replace("-", "")}?'),
    )
    def test_forms(self, example):
        fits, *changes = example
        self.assertEqual(fits, self.fits(*changes))

    @ddt.data(
        *(('', FORMS), ('without', FORMS), ('without:', FORMS), ('Without:a', FORMS)),
        *(('copies:a', COPIES), ('copies:0*a', COPIES), ('copies:1_0*a', COPIES)),
        *(('copies:1000000*a', COPIES), ('copies:2*', COPIES), ('set:VCPU.total', FIELD)),
        *(('set:.total=2', FIELD), ('set:VCPU.resource_provider_generation=2', FIELD)),
        *(('trait:A', TRAIT), ('trait:+', TRAIT), ('trait:+?name=a', TRAIT)),
        ('set:VCPU.total=', "The value '' is not a number."),
        ('set:VCPU.total=NaN', "The value 'NaN' is not a number."),
        ('set:VCPU.total=true', "True is not of type 'integer' (at $.total)."),
        ('set:VCPU.total=0', '0 is less than the minimum of 1 (at $.total).'),
        ('set:VCPU.allocation_ratio=1e39', 'is greater than the maximum of 3.40282e+38'),
        ('aggregate:+a', "'a' is not a 'uuid'."),
        (f'aggregate:-{{{UNKNOWN}}}', 'is too long.'),
        # What the API says of a filter.
        ('trait:+CUSTOM_A?nam=a', "'nam' is unknown. Did you mean name?"),
        ('trait:+CUSTOM_A?required=', 'a trait name is empty.'),
        ('trait:+CUSTOM_A?name=%ff', 'Invalid query string parameters: it is not valid UTF-8.'),
        ('trait:+CUSTOM_A?required=CUSTOM_NO', 'No such trait: CUSTOM_NO.'),
        ('trait:+CUSTOM_A?name=x', 'No resource provider matches the filter.'),
        # What the database decides.
        ('set:CUSTOM_NO.total=1', 'Unknown resource class: No such resource class CUSTOM_NO.'),
        ('trait:+CUSTOM_NO', 'No such trait: CUSTOM_NO.'),
        ('set:VCPU.reserved=9', "Invalid inventory for 'VCPU' on resource provider"),
        ('without:none', "No resource provider has the name or the UUID 'none'."),
        ('copies:2*a', "The name 'a-copy-1' is taken."),
    )
    @ddt.unpack
    def test_refusals(self, change, reason):
        # An earlier change makes a copy.
        done = self.manage(2, 'headroom', 'resources=VCPU:1', *options((*TAKEN, change)))
        expected = f"Error: The assumption '{change}' is not valid: "
        self.assertEqual(expected, done.stderr[: len(expected)])
        self.assertIn(reason, done.stderr)
        self.assertTrue(done.stderr.endswith('.\n'))

    def test_refusals_of_stored_rows(self):
        table, long = models.resource_providers, 'm' * 194
        other = self.make_provider('n' * 193)
        self.assertEqual(24, self.fits(f'copies:1*{"n" * 193}'))
        copied = str(uuid.uuid5(uuid.UUID(self.a), 'copy-1'))
        no_root = (
            "The resource provider 'a' has no root. Run `placement-manage audit --only "
            'root-missing,parent-cycle`.'
        )
        cycle = dict.fromkeys(('root_provider_id', 'parent_provider_id'), table.c.id)
        for provider, values, change, reason in (
            (other, {'name': long}, f'copies:1*{long}', f"'{long}-copy-1' is longer than 200"),
            (other, {'name': 'a-copy-1'}, 'copies:1*a', "The name 'a-copy-1' is taken."),
            (other, {'name': 'x', 'uuid': copied}, 'copies:1*a', f"uuid '{copied}' is taken."),
            (self.a, {'uuid': 'none'}, 'copies:1*a', 'badly formed hexadecimal UUID string.'),
            (
                self.child,
                {'root_provider_id': 77777},
                f'set:VGPU.total=9?uuid={self.child}',
                'No resource provider matches the filter.',
            ),
            ('none', {'root_provider_id': None}, 'without:a', no_root),
            ('none', cycle, 'without:a', no_root),
        ):
            with db_api.get_placement_engine().begin() as conn:
                conn.execute(sa.update(table).where(table.c.uuid == provider).values(**values))
            self.assertRefused(reason, 'headroom', 'resources=VCPU:1', '--assume', change)

    def test_copies_can_have_the_names_of_removed_providers(self):
        self.make_provider('c', {'VCPU': 1})
        self.make_provider('c-copy-1', {'VCPU': 2})
        changes = ('without:c-copy-1', 'copies:1*a', 'copies:1*c')
        self.assertEqual(8 + 16 + 1 + 8 + 1, self.fits(*changes))

    def test_a_uuid_has_precedence_over_a_name(self):
        self.make_provider(self.a, {'VCPU': 2})
        self.assertEqual(16 + 2, self.fits(f'without:{self.a}'))

    def test_usage_above_the_capacity(self):
        for provider, amounts in ((self.a, {'VCPU': 5, 'DISK_GB': 90}), (self.b, {'VCPU': 7})):
            body = base.claim({provider: amounts})
            self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body)
        changes = ('set:VCPU.total=6', 'set:DISK_GB.reserved=90', 'set:VCPU.allocation_ratio=0.25')
        command = ('headroom', 'resources=VGPU:1', *options(changes))
        (found,) = self.document(0, *command)
        over = {
            'DISK_GB': {'inventories': 1, 'amount': 80},
            'VCPU': {'inventories': 2, 'amount': 4 + 6},
        }
        self.assertEqual((list(changes), over), (found['assumptions'], found['over']))
        self.assertEqual(
            [
                f'Assumed: {", ".join(changes)}',
                'The usage of DISK_GB exceeds the capacity of 1 inventory by 80.',
                'The usage of VCPU exceeds the capacity of 2 inventories by 10 in total.',
            ],
            self.manage(0, *command).stdout.partition('\n\n')[0].splitlines(),
        )

    def test_names_of_uuids(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'names.json')
        path.write_text(json.dumps([{'ID': UNKNOWN, 'Name': 'fast'}]))
        changes = (f'aggregate:+{UNKNOWN}', f'aggregate:-{UNKNOWN}?member_of={UNKNOWN}')
        command = ('headroom', 'resources=VCPU:1', *options(changes), '--names', str(path))
        named = f'fast {UNKNOWN}'
        self.assertEqual(
            f'Assumed: aggregate:+{named}, aggregate:-{named}?member_of={named}',
            self.manage(0, *command).stdout.splitlines()[0],
        )
