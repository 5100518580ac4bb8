"""The command `placement-manage drain`: the definition and the promise in random clouds; examples.

Sent to the API in the order of the file, all moves are granted; after a drain that fits, the trees
are empty. To check other clouds than the suite, set PLACEMENT_TEST_DRAIN, for example to
`1000-2000`. It prints how many of the possible drains were found.
"""

from collections import Counter
from collections.abc import Sequence
import json
import os
import pathlib
import random
from typing import Any

import ddt
import fixtures
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import servers, where, worlds
from placement.tests.functional import base, in_process
from placement.tests.functional.admin import assumed_requests
from placement.tests.properties import Seeds
from placement.tests.worlds import drains, rows
from placement.tests.worlds.naive_drain import Definition

# On a server, the same statements only have to be valid there.
SEEDS = Seeds('PLACEMENT_TEST_DRAIN', '0-15' if servers.ADMIN_URL in os.environ else '0-150')
# The moves of every third drain are sent; in every ninth cloud, changes are made.
SENT, CHANGED = 3, 9


class TestCase(base.WorldTestCase, in_process.Commands):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.moves = self.folder / 'moves.jsonl'

    def fill(self, world: worlds.World, *consumers: worlds.Consumer) -> None:
        rows.fill(db_api.get_placement_engine(), world.claimed(*consumers))

    def drain(self, *arguments: str) -> Any:
        """Return the document, and require the exit status that it implies."""
        done = in_process.run('drain', *arguments, '--format', 'json')
        self.assertEqual('', done.stderr)
        found = json.loads(done.stdout)
        if all(one['verdict'] == 'fits' for one in found):
            self.assertEqual(0, done.status)
        elif '--each' not in arguments:
            self.assertEqual(1, done.status)
        return found

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.moves.read_text().splitlines()]


class RandomWorldsTest(TestCase):
    def test_verdicts_and_moves(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = drains.case(seed)
            with self.subTest(seed=seed, style=case.style):
                self.fill(case.world)
                (found,) = self.drain(*case.arguments, '--moves', str(self.moves))
                counts += self._check_verdict(case, found)
                self.assertEqual(found['placed'], len(self.lines()))
                if seed % SENT == 0:
                    self._check_moves(case, found)
        SEEDS.show(counts)
        self.assertGreaterEqual(counts['fits'], 0.97 * counts['possible'])
        # The first worlds of each style need not have each verdict.
        if len(SEEDS.range) > 2 * len(drains.STYLES):
            self.assertLess({'fits', 'impossible', 'nowhere', 'sum'}, counts.keys())

    def _check_verdict(self, case: drains.Case, found: Any) -> Counter[str]:
        definition = Definition(case)
        possible, verdict, reason = definition.can_drain(), found['verdict'], found['reason']
        self.assertEqual(found['consumers'], len(case.affected))
        nowhere = {one.uuid for one in case.affected if definition.is_nowhere(one)}
        unplaced = {one['consumer'] for one in found['unplaced'] if one['nowhere']}
        if verdict == 'fits':
            self.assertTrue(possible)
            self.assertEqual((None, [], {}), (reason, found['unplaced'], found['missing']))
        else:
            self.assertEqual(nowhere, unplaced)
            sums = sum((Counter(one['resources']) for one in found['unplaced']), Counter())
            self.assertTrue(found['missing'] and Counter(found['missing']) <= sums)
            expected = 'nowhere' if nowhere else 'sum' if definition.exceeds_sum() else None
            self.assertEqual(expected, reason)
            self.assertEqual('not found' if reason is None else 'impossible', verdict)
            self.assertFalse(possible and verdict == 'impossible')
        return Counter({verdict: 1, reason or 'no reason': 1, 'possible': possible})

    def _check_moves(self, case: drains.Case, found: Any) -> None:
        for line in self.lines():
            self.assertEqual('consumer_type' in line['body'], line['microversion'] == '1.39')
            path = f'/allocations/{line["consumer"]}'
            before = self.send_ok('GET', path)
            response = self.send('PUT', path, line['body'], line['microversion'])
            self.assertEqual(204, response.status_code, response.text)
            self._check_move(line, before, self.send_ok('GET', path))
        for provider in case.world.providers:
            if found['verdict'] == 'fits' and provider.root_id in (case.roots or ()):
                path = f'/resource_providers/{provider.uuid}/allocations'
                self.assertEqual({}, self.send_ok('GET', path)['allocations'])

    def _check_move(self, line: Any, before: Any, after: Any) -> None:
        """The owner stays, and only the providers of the old trees are left."""
        kept = ('project_id', 'user_id', 'consumer_type')
        self.assertEqual([before[key] for key in kept], [after[key] for key in kept])
        roots = {
            uuid: self.send_ok('GET', f'/resource_providers/{uuid}')['root_provider_uuid']
            for uuid in before['allocations']
        }
        for uuid in after['allocations']:
            self.assertNotIn(roots.get(uuid), line['from'])
        self.assertTrue({*roots.values()} >= {*line['from']})
        sums = [
            sum((Counter(one['resources']) for one in body['allocations'].values()), Counter())
            for body in (before, after)
        ]
        self.assertEqual(*sums)

    def test_assumed_results_are_those_after_requests(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range[::CHANGED]:
            case = drains.case(seed)
            changes = [_change(random.Random(seed + n), case) for n in range(2)]
            with self.subTest(seed=seed, changes=changes):
                self.fill(case.world)
                counts += self._compare(case, changes)
        SEEDS.show(counts)
        self.assertGreater(counts['changed'], len(SEEDS.range) // CHANGED // 4)

    def _compare(self, case: drains.Case, changes: Sequence[str]) -> Counter[str]:
        before = self._results(case)
        assumed = self._results(case, *(word for one in changes for word in ('--assume', one)))
        try:
            for change in changes:
                assumed_requests.change(self, change)
        except assumed_requests.RefusedError:
            self.assertEqual([(2, [])] * 2, assumed)
            return Counter(['refused'])
        after = self._results(case)
        self.assertEqual(after, assumed)
        return Counter(drains=len(assumed), changed=before != after)

    def _results(self, case: drains.Case, *options: str) -> list[tuple[int, Any]]:
        """Return the results of the drain of a case, and of each tree by itself."""
        results = []
        for words in (case.arguments, ('--each', *case.options)):
            done = in_process.run('drain', *words, *options, '--format', 'json')
            document = json.loads(done.stdout or '[]')
            for one in document:
                one.pop('assumptions', None)
                one.pop('over', None)
            results.append((done.status, document))
        return results


def _change(rng: random.Random, case: drains.Case) -> str:
    """Return a change. The drained trees stay."""
    roots = [host.name for host in case.empty.hosts if host.parent is None]
    stays = [name for name in roots if name not in case.drained]
    host = rng.choice(stays or roots)
    name, trait, aggregate = f'?name={host}', worlds.trait('T1'), worlds.uuid_of('A')
    return rng.choice(
        (
            f'without:{host}' if stays and not case.moving else f'copies:2*{host}',
            f'copies:1*{host}',
            f'set:VCPU.total={rng.randint(2, 20)}',
            'set:VCPU.allocation_ratio=2.0',
            f'trait:+{worlds.trait("DISABLED")}{name}',
            f'trait:{rng.choice("+-")}{trait}{name}',
            f'aggregate:{rng.choice("+-")}{aggregate}{name}',
        )
    )


def consumer(name: str, type_: str | None, provider: str, **amounts: int) -> worlds.Consumer:
    """Return a consumer with allocations from one provider, by short names of classes."""
    allocations = {provider: {worlds.CLASSES[short]: n for short, n in amounts.items()}}
    return worlds.Consumer(name, allocations, type_, f'project-{name}', f'user-{name}', len(name))


# The load of `small` fits elsewhere, and that of `large` does not.
WORLD = worlds.World.of("""
small[V:4, M:64] @A
large[V:16, M:64] @B
child_of_none[V:6, M:64] @A
""").claimed(
    consumer('one', 'INSTANCE', 'small', V=2, M=8),
    consumer('two', None, 'small', V=1),
    consumer('three', 'INSTANCE', 'large', V=4),
    consumer('four', 'INSTANCE', 'large', V=5),
)
UUIDS = {name: worlds.uuid_of(name) for name in ('one', 'two', 'three', 'four', 'A')}
ROOTS = {host.name: host.uuid for host in WORLD.hosts}
# The page of the guide has a whole document, and the tests execute it.
FITS = ('small', 'fits', None, {}, 2)
IMPOSSIBLE = ('large', 'impossible', 'sum', {'VCPU': 4}, 1)
ALONE = ('--assume', 'without:large', '--assume', 'without:child_of_none')
SUM = 'The free capacity of the other trees is too small.'
DISABLE = 'openstack compute service set --disable child_of_none nova-compute'


def summary(found: Any) -> tuple[Any, ...]:
    """Return the most important members of an element of the document."""
    names = ', '.join(tree['name'] for tree in found['trees'])
    return (names, found['verdict'], found['reason'], found['missing'], found['placed'])


@where.only_on('sqlite', reason='The random worlds execute the same statements.')
@ddt.ddt
class CommandTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.fill(WORLD)

    @ddt.data(
        (('small',), FITS),
        ((ROOTS['small'], 'small', ROOTS['small'].upper()), FITS),
        (('large',), IMPOSSIBLE),
        (('small', 'large'), ('large, small', 'impossible', 'sum', {'VCPU': 6}, 2)),
        (('--each',), IMPOSSIBLE, FITS),
        (('--each', 'child_of_none'), ('child_of_none', 'fits', None, {}, 0)),
        (
            ('--consumer', UUIDS['three'].upper(), UUIDS['two']),
            ('large, small', 'fits', None, {}, 2),
        ),
        (('small', '--where', f'member_of=!{UUIDS["A"]}'), FITS),
        *(
            (
                ('small', '--where', f'{key}=HW_CPU_X86_AVX2'),
                ('small', 'impossible', 'nowhere', {'VCPU': 3, 'MEMORY_MB': 8}, 0),
            )
            for key in ('root_required', 'required')
        ),
        (
            ('large', '--same-aggregates'),
            ('large', 'impossible', 'nowhere', {'VCPU': 9}, 0),
        ),
        (('small', '--same-aggregates'), FITS),
        (('small', '--same-traits', 'HW_*'), FITS),
        (
            ('large', '--assume', 'set:VCPU.total=9?name=child_of_none'),
            ('large', 'fits', None, {}, 2),
        ),
        # Copies of a tree have no consumers, and a tree can be gone.
        (
            ('--each', '--assume', 'copies:2*large', '--assume', 'without:child_of_none'),
            ('large', 'fits', None, {}, 2),
            FITS,
        ),
        (('large-copy-1', '--assume', 'copies:1*large'), ('large-copy-1', 'fits', None, {}, 0)),
        (
            ('--consumer', UUIDS['one'], *ALONE),
            ('small', 'impossible', 'nowhere', {'VCPU': 2, 'MEMORY_MB': 8}, 0),
        ),
    )
    def test_results(self, case):
        arguments, *expected = case
        self.assertEqual(expected, [summary(one) for one in self.drain(*arguments)])

    def test_only_short_classes_are_missing(self):
        """Of each consumer, the classes without whose amount it would have a place after the moves.

        If there is no such class, all of its classes are missing.
        """
        world = worlds.World.of('a[V:8, M:8, D:9]\n  g[VGPU:2]\nb[V:4, M:9]\nc[V:8]')
        gpu = worlds.Consumer('gpu', {'a': {'VCPU': 2, 'MEMORY_MB': 1}, 'g': {'VGPU': 1}})
        two = consumer('two', None, 'a', V=2, M=6)
        three = consumer('three', None, 'a', V=1, M=3)
        disk = consumer('disk', None, 'a', V=5, D=7)
        both = consumer('both', None, 'a', V=5, M=4, D=2)
        for consumers, missing in (
            ([gpu], {'VGPU': 1}),
            # After the move of the first one, b has 2 VCPU and 3 MEMORY_MB.
            ([two, three], {}),
            ([two, consumer('five', None, 'a', V=1, M=4)], {'MEMORY_MB': 4}),
            ([two, consumer('six', None, 'a', V=3, M=3)], {'VCPU': 3, 'MEMORY_MB': 3}),
            ([disk], {'DISK_GB': 7}),
            ([gpu, disk], {'VGPU': 1, 'DISK_GB': 7}),
            ([both], {'VCPU': 5, 'MEMORY_MB': 4, 'DISK_GB': 2}),
        ):
            self.fill(world, *consumers)
            (found,) = self.drain('a')
            self.assertEqual(missing, found['missing'], consumers)

    @ddt.data(
        (('child_of_none',), 'child_of_none can be drained: no consumer has to move.', DISABLE),
        (('--each', 'small'), 'Each of 1 host can be drained.', None),
        (
            ('large',),
            f'large cannot be drained: no room for 1 of 2 servers (4 VCPU). {SUM}',
            "placement-manage drain large --assume 'copies:1*large'",
        ),
        (
            ('--each',),
            '1 of 2 hosts can be drained; large lacks room for 1 of 2 servers (4 VCPU).',
            'placement-manage drain large',
        ),
        (
            ('--consumer', UUIDS['three'], UUIDS['four']),
            f'Not all consumers can move: no room for 1 of 2 servers (4 VCPU). {SUM}',
            None,
        ),
        (
            ('small', '--where', 'required=HW_CPU_X86_AVX2'),
            'small cannot be drained: no room for 2 of 2 servers (3 VCPU, 8 MEMORY_MB). A consumer '
            'has no place in any other tree, even if all others vanish.',
            'placement-manage drain small --where required=HW_CPU_X86_AVX2 '
            "--assume 'copies:1*small'",
        ),
        (
            ('--each', '--assume', 'set:VCPU.total=99'),
            'N+1 holds: each of 2 hosts can be drained.',
            None,
        ),
        (('small', '--assume', 'copies:1*small'), 'small can be drained: 2 servers, to 1', None),
        (
            ('large', '--assume', 'trait:+HW_NUMA_ROOT'),
            'large cannot be drained',
            "placement-manage drain large --assume trait:+HW_NUMA_ROOT --assume 'copies:1*large'",
        ),
    )
    @ddt.unpack
    def test_the_verdict_is_first_and_the_next_command_last(self, arguments, verdict, command):
        done = in_process.run('drain', *arguments)
        text = done.stdout
        if '--assume' in arguments:
            heading, _, text = text.partition('\n\n')
            self.assertEqual(f'Assumed: {arguments[-1]}', heading)
        self.assertEqual('', done.stderr)
        self.assertTrue(' '.join(text.split()).startswith(verdict), text)
        last = done.stdout.splitlines()[-1]
        self.assertEqual(command, last.removeprefix('Next: ') if 'Next: ' in last else None)
        self.assertEqual(
            any(word in verdict for word in ('cannot', 'Not', 'room')), bool(done.status)
        )

    def test_the_consumers_of_other_types_are_no_servers(self):
        self.fill(worlds.World.of('a[V:8]\nb[V:8]'), consumer('one', 'MIGRATION', 'a', V=2))
        done = self.manage(0, 'drain', 'a')
        self.assertIn('a can be drained: 1 consumer, to 1 host.', done.stdout)
        self.assertNotIn('Next', self.manage(0, 'drain', '--consumer', UUIDS['one']).stdout)

    def test_tables(self):
        path = self.folder / 'names.json'
        path.write_text(json.dumps([{'ID': UUIDS['three'], 'Name': 'web-3'}]))
        done = self.manage(1, 'drain', 'large', '--names', str(path))
        self.assertRegex(done.stdout, rf'\| web-3 {UUIDS["three"]} +\| INSTANCE \| 4 VCPU')
        # The table of several trees has those that do not fit.
        done = self.manage(1, 'drain', '--each')
        self.assertNotIn('| small', done.stdout)
        self.assertNotIn('Project', done.stdout)

    def test_pools_are_no_hosts(self):
        self.fill(
            worlds.World.of(
                'S[D:9] {SHARE} @A\nT[D:1] {SHARE} @A\nH1[V:4, D:4] {SHARE} @A\nH2[V:4] @A'
            ),
            worlds.Consumer('a', {'H1': {'VCPU': 1}, 'S': {'DISK_GB': 6}}),
            worlds.Consumer('b', {'H2': {'VCPU': 1}, 'T': {'DISK_GB': 1}}),
        )
        self.assertEqual(4, len(self.drain('--each')))
        done = self.manage(0, 'drain', '--each')
        self.assertEqual(
            'N+1 holds: each of 2 hosts can be drained. 1 of 2 sharing providers can be drained.',
            done.stdout.splitlines()[0],
        )
        self.assertNotIn('Next', done.stdout)
        done = self.manage(1, 'drain', '--each', 'S')
        self.assertEqual('0 of 1 sharing provider can be drained.', done.stdout.splitlines()[0])

    def test_long_lists_are_cut_off(self):
        hosts = [f'H{n}[V:9]' for n in range(1, 12)]
        consumers = [consumer(f'a{n}', None, 'a', V=1) for n in range(12)]
        consumers += [consumer(f'b{n}', 'INSTANCE', f'H{n}', V=9) for n in range(1, 12)]
        self.fill(worlds.World.of('\n'.join(['a[V:12]', *hosts])), *consumers)
        for arguments, what in (('a',), 'consumers'), (('--each',), 'trees'):
            done = self.manage(1, 'drain', *arguments)
            self.assertIn(f'\n2 more {what}: see --format json.\n', done.stdout)

    def test_moves_have_the_type_of_the_consumer(self):
        self.drain('--each', 'small', '--moves', str(self.moves))
        self.assertEqual(
            [(UUIDS['one'], '1.39', 'INSTANCE'), (UUIDS['two'], '1.37', None)],
            [
                (line['consumer'], line['microversion'], line['body'].get('consumer_type'))
                for line in self.lines()
            ],
        )

    def test_moves_after_an_assumed_change_have_the_next_generation(self):
        both = worlds.Consumer('both', {'a': {'VCPU': 1}, 'b': {'VCPU': 1}}, generation=5)
        self.fill(worlds.World.of('a[V:4]\nb[V:4]\nc[V:9]'), both)
        for assumed, generation in (((), 5), (('--assume', 'without:b'), 6)):
            self.drain('a', *assumed, '--moves', str(self.moves))
            (line,) = self.lines()
            self.assertEqual(generation, line['body']['consumer_generation'])

    def test_allocations_from_a_provider_that_does_not_exist(self):
        providers = models.resource_providers
        with db_api.get_placement_engine().begin() as conn:
            conn.execute(sa.delete(providers).where(providers.c.name == 'small'))
        done = self.manage(1, 'drain', '--consumer', UUIDS['one'])
        self.assertIn('Not all consumers can move: no room for 1 of 1 server. ', done.stdout)

    def test_refusals(self):
        """What is not valid is refused with one sentence."""
        for arguments, sentence in (
            ((), 'The command needs PROVIDER, --each, or --consumer.'),
            (('host', '--consumer', 'one'), '--consumer excludes PROVIDER and --each.'),
            (('--each', '--consumer', 'one'), '--consumer excludes PROVIDER and --each.'),
            (('host', '--where', 'resources=VCPU:1'), '--where accepts member_of, required'),
            (('host', '--where', 'required1=A'), 'but not required1.'),
            (('host', '--where', 'member_of=x'), '--where is not valid: '),
            (('small', '--where', 'required=CUSTOM_NO'), '--where is not valid: No such trait'),
            (('host', '--moves', '-'), 'standard output contains the result'),
            (('host', '--moves', '/nowhere/moves'), 'The file /nowhere/moves cannot be written'),
            (('--each', '--moves', str(self.moves)), '--moves with --each requires a single tree.'),
            (('none',), "No resource provider has the name or the UUID 'none'."),
            (('large', '--assume', 'without:large'), "the name or the UUID 'large'."),
            (('--consumer', 'none'), 'The consumer none does not exist or has no allocations.'),
            (
                ('--consumer', UUIDS['one'], '--assume', 'without:small'),
                f'The consumer {UUIDS["one"]} does not exist or has no allocations.',
            ),
        ):
            with self.subTest(arguments):
                self.assertRefused(sentence, 'drain', *arguments)

    def test_damaged_data(self):
        database = db_api.get_placement_engine()
        with database.begin() as conn:
            consumers = models.consumers
            conn.execute(consumers.delete().where(consumers.c.uuid == UUIDS['four']))
        self.assertRefused('`placement-manage audit --only orphan-allocation`', 'drain', 'large')
        self.drain('small')
        with database.begin() as conn:
            conn.execute(models.projects.delete())
            conn.execute(models.resource_providers.insert(), {'uuid': ROOTS['small'][::-1]})
        done = self.manage(0, 'drain', 'small')
        self.assertIn('lacks the resource providers without a root (1)', done.stderr)
        done = in_process.run('drain', 'small', '--moves', str(self.moves))
        self.assertEqual(2, done.status)
        self.assertIn('`placement-manage audit --only owner-missing`', done.stderr)

    def test_an_empty_database(self):
        self.fill(worlds.World.of(''))
        self.assertEqual([], self.drain('--each'))
        done = self.manage(0, 'drain', '--each')
        self.assertEqual('No resource provider has allocations.\n', done.stdout)

    def test_the_number_of_statements_does_not_depend_on_the_size_of_the_cloud(self):
        hosts = [f'H{number}[V:9] @A' for number in range(6)]
        numbers = set()
        for size in (2, 6):
            world = worlds.World.of('\n'.join([*hosts[:size], 'SS[D:100] {SHARE} @A']))
            consumers = (
                worlds.Consumer(str(n), {f'H{n}': {'VCPU': 1}, 'SS': {'DISK_GB': 2}})
                for n in range(size)
            )
            self.fill(world, *consumers)
            with self.counted() as counts:
                found = self.drain('--each')
            self.assertEqual([1] * size + [size], sorted(one['consumers'] for one in found))
            numbers.add(counts['all'])
        self.assertEqual(1, len(numbers))
