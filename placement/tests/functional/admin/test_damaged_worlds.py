"""The report and the exporter show of damaged worlds what the API says.

The environment variable PLACEMENT_TEST_DAMAGED_WORLDS sets the seeds, for example 0-200.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
import contextlib
from dataclasses import dataclass
import itertools
import json
import re
from typing import Any

import os_traits

from placement.db.sqlalchemy import models
from placement.tests import prometheus_text, where
from placement.tests.functional import base, in_process
from placement.tests.functional.admin import damaged_worlds
from placement.tests.properties import Seeds

SEEDS = Seeds('PLACEMENT_TEST_DAMAGED_WORLDS', '0-10')

# The sums of one class: the number of inventories, capacity, used, free, and reserved.
Sums = dict[str, Counter[str]]
_DOCUMENT = r'<script type="application/json" id="\w+">(.*?)</script>'
_SUMS = ('inventories', 'capacity', 'used', 'free', 'reserved')


@dataclass(frozen=True, slots=True)
class Provider:
    """What the API returns about a provider.

    :ivar root: the UUID of its root provider; its own UUID if the API does not list the provider
    :ivar consumers: the UUID of each consumer -> class -> amount
    """

    uuid: str
    name: str
    root: str
    listed: bool
    generation: int
    inventories: Mapping[str, Mapping[str, Any]]
    usages: Mapping[str, int]
    traits: frozenset[str]
    aggregates: frozenset[str]
    consumers: Mapping[str, Mapping[str, int]]

    def sums(self, disabled: bool) -> Sums:
        """Return the sums of its inventories."""
        return {
            name: Counter(
                inventories=1,
                capacity=_capacity(one),
                used=self.usages[name],
                free=0 if disabled else max(0, _capacity(one) - self.usages[name]),
                reserved=one['reserved'],
            )
            for name, one in self.inventories.items()
        }


def _capacity(inventory: Mapping[str, Any]) -> int:
    return int((inventory['total'] - inventory['reserved']) * inventory['allocation_ratio'])


@where.not_on('postgresql', reason='test_reading and test_report execute the same statements.')
class DamagedWorldsTest(base.TestCase):
    def test_the_report_and_the_metrics_are_equal_to_what_the_api_says(self) -> None:
        self.kinds: Counter[str] = Counter()
        classes, traits = (
            damaged_worlds.ids_of_names(table) for table in (models.resource_classes, models.traits)
        )
        for seed in SEEDS.range:
            world = damaged_worlds.rows(seed, classes, traits)
            damaged_worlds.fill(world)
            with self.subTest(seed=seed):
                providers = self.read_providers(world)
                self.count_kinds(world, providers)
                self.check_metrics(world, providers)
                self.check_report(world, providers)
        # The worlds are varied.
        self.assertEqual(8, len(+self.kinds), self.kinds)
        SEEDS.show(self.kinds)

    def read_providers(self, world: damaged_worlds.Rows) -> dict[str, Provider]:
        """Return what the API says about all providers of a world."""
        listed = {
            one['uuid']: one
            for one in self.send_ok('GET', '/resource_providers')['resource_providers']
        }
        found = {}
        for row in world[models.resource_providers]:
            one = listed.get(row['uuid'])
            root = one['root_provider_uuid'] if one else row['uuid']
            # The report contains the providers that the API does not return.
            with contextlib.nullcontext() if one else damaged_worlds.visible(row):
                found[row['uuid']] = self.read_provider(row, root, one is not None)
        return found

    def read_provider(self, row: Mapping[str, Any], root: str, listed: bool) -> Provider:
        documents = {
            name: self.send_ok('GET', f'/resource_providers/{row["uuid"]}/{name}')
            for name in ('inventories', 'usages', 'traits', 'aggregates', 'allocations')
        }
        allocations = documents['allocations']['allocations']
        return Provider(
            row['uuid'],
            row['name'] or '',
            root,
            listed,
            documents['inventories']['resource_provider_generation'],
            documents['inventories']['inventories'],
            documents['usages']['usages'],
            frozenset(documents['traits']['traits']),
            frozenset(documents['aggregates']['aggregates']),
            {consumer: allocation['resources'] for consumer, allocation in allocations.items()},
        )

    def usages_of_projects(self) -> dict[str, dict[str, int]]:
        """Return project -> class -> amount, with the key `consumer_count`."""
        usages = {}
        for project in damaged_worlds.PROJECTS:
            path = f'/usages?project_id={project}&consumer_type=all'
            usages[project] = self.send_ok('GET', path)['usages'].get('all', {})
        return usages

    def count_kinds(self, world: damaged_worlds.Rows, providers: Mapping[str, Provider]) -> None:
        """Count what is unusual in a world."""
        for one in providers.values():
            disabled = os_traits.COMPUTE_STATUS_DISABLED in providers[one.root].traits
            self.kinds += Counter(
                unlisted=not one.listed,
                disabled=disabled,
                sharing=os_traits.MISC_SHARES_VIA_AGGREGATE in one.traits,
                null_names=not one.name,
            )
            for sums in one.sums(disabled).values():
                self.kinds += Counter(
                    inventories=1,
                    negative=sums['capacity'] < 0,
                    exceeded=sums['used'] > max(0, sums['capacity']),
                )
        known = {one['uuid'] for one in world[models.consumers]}
        consumers = {one['consumer_id'] for one in world[models.allocations]}
        self.kinds += Counter(missing_consumers=len(consumers - known))

    # The exporter --------------------------------------------------------------------

    def check_metrics(self, world: damaged_worlds.Rows, providers: Mapping[str, Provider]) -> None:
        found = prometheus_text.parse(in_process.run('exporter', '--once').stdout)
        expected: prometheus_text.Samples = {('placement_up',): 1}
        listed = [one for one in providers.values() if one.listed]
        expected['placement_providers',] = len(listed)
        for one in listed:
            expected |= _samples(one, providers[one.root])
        for project, usages in self.usages_of_projects().items():
            for name, used in usages.items():
                if name != 'consumer_count':
                    expected['placement_project_usage', project, name] = used
        # Rows of the tables, whether or not the API returns them.
        allocations = world[models.allocations]
        with_rows = {one['consumer_id'] for one in allocations} & {
            one['uuid'] for one in world[models.consumers]
        }
        expected['placement_consumers',] = len(with_rows)
        expected['placement_allocations',] = len(allocations)
        self.assertEqual({}, _differences(expected, found))

    # The report ----------------------------------------------------------------------

    def check_report(self, world: damaged_worlds.Rows, providers: Mapping[str, Provider]) -> None:
        page = in_process.run('report', '-').stdout
        data, listed = map(json.loads, re.findall(_DOCUMENT, page))
        members: dict[str, set[str]] = defaultdict(set)
        for one in providers.values():
            members[one.root].add(one.uuid)
        shown = list(_shown_providers(data))
        self.assertEqual({one.uuid: _as_shown(one) for one in providers.values()}, dict(shown))
        order = iter([uuid for uuid, _ in shown])
        sizes = data['trees']['size']
        groups = [set(itertools.islice(order, size)) for size in sizes]
        self.assertEqual(
            {frozenset(uuids) for uuids in members.values()}, set(map(frozenset, groups))
        )
        roots = {frozenset(uuids): root for root, uuids in members.items()}
        of_groups = [providers[roots[frozenset(group)]] for group in groups]
        self.assertEqual(
            [int(os_traits.COMPUTE_STATUS_DISABLED in root.traits) for root in of_groups],
            data['trees']['disabled'],
        )
        self.check_sums(data, providers)
        self.check_projects(data)
        self.check_consumers(world, listed, groups, providers)

    def check_sums(self, data: Mapping[str, Any], providers: Mapping[str, Provider]) -> None:
        by_class: Sums = defaultdict(Counter)
        by_part: dict[str, dict[str, Sums]] = {
            kind: defaultdict(lambda: defaultdict(Counter)) for kind in ('aggregate', 'trait')
        }
        for one in providers.values():
            root = providers[one.root]
            sums = one.sums(os_traits.COMPUTE_STATUS_DISABLED in root.traits)
            parts = {
                'aggregate': one.aggregates | root.aggregates,
                'trait': one.traits | root.traits,
            }
            for name, counted in sums.items():
                by_class[name].update(counted)
                for kind, links in parts.items():
                    for link in links:
                        by_part[kind][link][name].update(counted)
        totals = data['class_totals']
        found = {
            name: {column: totals[column][position] for column in _SUMS}
            for position, name in enumerate(data['classes'][: len(totals['used'])])
            if not name.startswith('unknown')
        }
        self.assertEqual(_plain(by_class), found)
        for kind, expected in by_part.items():
            self.assertEqual(
                {name: _plain(sums, 'inventories') for name, sums in expected.items()},
                _shown_parts(data, kind),
            )

    def check_projects(self, data: Mapping[str, Any]) -> None:
        part = data['parts']['project']
        found = _shown_parts(data, 'project')
        counts = dict(zip(part['name'], part['count'], strict=True))
        for project, usages in self.usages_of_projects().items():
            expected = {name: used for name, used in usages.items() if name != 'consumer_count'}
            shown = {name: sums['used'] for name, sums in found.get(project, {}).items()}
            self.assertEqual((project, expected), (project, shown))
            if usages:
                self.assertEqual(usages['consumer_count'], counts[project])

    def check_consumers(
        self,
        world: damaged_worlds.Rows,
        listed: Mapping[str, Any],
        groups: list[set[str]],
        providers: Mapping[str, Provider],
    ) -> None:
        """Compare the consumers of each tree; the API omits consumers without a row."""
        known = {one['uuid'] for one in world[models.consumers]}
        columns = iter(zip(listed['name'], listed['amounts'], strict=True))
        for group, size in zip(groups, listed['size'], strict=True):
            expected: dict[str, Counter[str]] = defaultdict(Counter)
            for uuid in group:
                for consumer, amounts in providers[uuid].consumers.items():
                    expected[consumer].update(amounts)
            found = {
                name: _known_classes(dict(listed['amount_sets'][amounts]))
                for name, amounts in itertools.islice(columns, size)
            }
            shown = {name: amounts for name, amounts in found.items() if name in known and amounts}
            self.assertEqual(expected, shown)


def _samples(one: Provider, root: Provider) -> prometheus_text.Samples:
    """Return the samples of a provider that the API lists."""
    disabled = str(os_traits.COMPUTE_STATUS_DISABLED in root.traits).lower()
    samples: prometheus_text.Samples = {
        ('placement_provider_info', disabled, one.name, root.name, one.uuid): 1
    }
    for aggregate in one.aggregates:
        samples['placement_provider_aggregate', aggregate, one.name] = 1
    for name, inventory in one.inventories.items():
        for metric, value in (
            ('openstack_placement_resource_total', inventory['total']),
            ('openstack_placement_resource_reserved', inventory['reserved']),
            ('openstack_placement_resource_allocation_ratio', inventory['allocation_ratio']),
            ('openstack_placement_resource_usage', one.usages[name]),
            ('openstack_placement_resource_generation', one.generation),
            ('placement_resource_capacity', _capacity(inventory)),
        ):
            samples[metric, one.name, name] = value
    return samples


def _differences(
    expected: prometheus_text.Samples, found: prometheus_text.Samples
) -> dict[tuple[str, ...], tuple[float | None, float | None]]:
    return {
        key: (expected.get(key), found.get(key))
        for key in expected.keys() | found.keys()
        if expected.get(key) != found.get(key)
    }


def _as_shown(one: Provider) -> dict[str, Any]:
    """Return a provider as the document of the report contains it."""
    return {
        'name': one.name,
        'generation': one.generation,
        'traits': one.traits,
        'aggregates': one.aggregates,
        'inventories': {
            name: {**inventory, 'capacity': _capacity(inventory), 'used': one.usages[name]}
            for name, inventory in one.inventories.items()
        },
    }


def _shown_providers(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the UUID and the contents of each provider, without links to missing rows."""
    columns, shapes = data['providers'], data['shapes']
    inventories = iter(zip(*data['inventories'].values(), strict=True))
    fields = [name for name in shapes if name != 'class']
    for position, uuid in enumerate(columns['uuid']):
        own = {
            data['classes'][shapes['class'][shape]]: {
                **{name: shapes[name][shape] for name in fields},
                'used': used,
            }
            for shape, used in itertools.islice(inventories, columns['inventories'][position])
        }
        links = {
            kind: frozenset(
                data[kind][link]
                for link in data[f'{kind.removesuffix("s")}_sets'][columns[kind][position]]
                if not data[kind][link].startswith('unknown')
            )
            for kind in ('traits', 'aggregates')
        }
        yield (
            uuid,
            {
                'name': columns['name'][position],
                'generation': columns['generation'][position],
                **links,
                'inventories': _known_classes(own),
            },
        )


def _known_classes(by_class: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in by_class.items() if not name.startswith('unknown class')}


def _plain(sums: Mapping[str, Counter[str]], *omitted: str) -> dict[str, dict[str, int]]:
    return {
        name: {column: one[column] for column in _SUMS if column not in omitted}
        for name, one in sums.items()
    }


def _shown_parts(data: Mapping[str, Any], kind: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return the sums of each class by the name of an aggregate, a trait, or a project."""
    part = data['parts'][kind]
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    columns = [name for name in _SUMS if name in part['totals']]
    for row, position in enumerate(part['totals']['part']):
        name, class_ = part['name'][position], data['classes'][part['totals']['class'][row]]
        if not name.startswith('unknown') and not class_.startswith('unknown'):
            found[name][class_] = {column: part['totals'][column][row] for column in columns}
    return dict(found)
