"""Converts the data of a report to the JSON document that the scripts of the page read.

The document is columnar: each property of all providers is one list, and equal sets of traits,
equal sets of aggregates, and equal inventories are stored once. It contains no database ids. The
positions of classes, traits, aggregates, and providers in their lists replace them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
import heapq
from typing import Any, Generic, TypeVar

from placement.admin.drain.render import amounts
from placement.admin.drain.report import IMPOSSIBLE, NOT_FOUND, Drain
from placement.admin.report.contents import (
    Consumer,
    Contents,
    Project,
    Total,
    Totals,
    Tree,
    capacity,
)
from placement.admin.tables import printable
from placement.candidates.model import ProviderInventory

# The table and the map show at most this number of trees.
TREES = 20_000
# The page lists at most this number of consumers of a tree.
CONSUMERS = 200
# The number of aggregates, of traits, and of projects that the page shows.
LINKS, PROJECTS = 1000, 100
# The number of resource classes with a column of their own in the table of providers.
MAIN = 3
# A tree is nearly full above this fullness, as in `bands.js`.
NEARLY_FULL = 0.9
# The sums of inventories that the page shows.
_SUMS = ('capacity', 'used', 'free', 'reserved', 'nominal')
# The words for a drain that does not fit.
_NOT_DRAINABLE = {IMPOSSIBLE: 'no', NOT_FOUND: 'no plan'}

Value = TypeVar('Value', bound=Hashable)
Document = dict[str, Any]


def _text(name: str) -> str:
    """Return a name without control characters; a name of blanks only is quoted."""
    return printable(name if name.strip() or not name else f"'{name}'")


class _Positions(Generic[Value]):
    """Assigns a position to each different value."""

    def __init__(self) -> None:
        self._positions: dict[Value, int] = {}

    def __call__(self, value: Value) -> int:
        return self._positions.setdefault(value, len(self._positions))

    def values(self) -> list[Value]:
        """Return the values in the order of their positions."""
        return list(self._positions)


class _Names:
    """The names of one kind, with the position of each id in the list of names."""

    def __init__(self, ids: Iterable[int], name_of: Callable[[int], str]) -> None:
        self.names: list[str] = []
        self._positions: dict[int, int] = {}
        for id_ in ids:
            self._positions[id_] = len(self.names)
            self.names.append(_text(name_of(id_)))

    def position(self, id_: int) -> int:
        """Return the position of an id."""
        return self._positions[id_]

    def positions(self, ids: Iterable[int]) -> list[int]:
        """Return the positions of ids, sorted by name."""
        return sorted(map(self.position, ids), key=self.names.__getitem__)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The names of resource classes, traits, and aggregates."""

    classes: _Names
    traits: _Names
    aggregates: _Names


@dataclass(frozen=True, slots=True)
class _Part:
    """An aggregate or a trait with the number of its trees, or a project with its consumers."""

    name: str
    count: int
    totals: Totals


def build(shown: Contents) -> Document:
    """Return the document."""
    sums = _sums(tree.totals for tree in shown.trees)
    usages = [class_id for _, class_id, _ in shown.cloud.usage]
    traits, aggregates = shown.cloud.traits, shown.cloud.aggregates
    first = shown.trees[:TREES]
    kinds = _Kinds(
        _Names(dict.fromkeys([*sorted(sums), *usages]), shown.class_name),
        _Names(_linked(first, 'traits'), lambda id_: traits.get(id_, f'unknown {id_}')),
        _Names(_linked(first, 'aggregates'), lambda id_: aggregates.get(id_) or f'unknown {id_}'),
    )
    return {
        'classes': kinds.classes.names,
        'main_classes': [kinds.classes.position(id_) for id_ in _main_classes(shown.trees)],
        'class_totals': {
            name: [getattr(sums[id_], name) for id_ in sorted(sums)]
            for name in ('inventories', *_SUMS)
        },
        'traits': kinds.traits.names,
        'aggregates': kinds.aggregates.names,
        **_providers(shown, first, kinds),
        **_trees(shown, first, kinds),
        'parts': {
            'aggregate': _links(shown.trees, 'aggregates', aggregates, kinds.classes),
            'trait': _links(shown.trees, 'traits', traits, kinds.classes),
            'project': _projects(shown.projects, sums, kinds.classes),
        },
    }


def _sums(all_totals: Iterable[Totals]) -> Totals:
    """Return the sums of several trees."""
    result: Totals = defaultdict(Total)
    for totals in all_totals:
        for class_id, total in totals.items():
            result[class_id].include(total)
    return result


def _main_classes(trees: Iterable[Tree]) -> list[int]:
    """Return the ids of the `MAIN` resource classes that the most trees have."""
    counts = Counter(class_id for tree in trees for class_id in tree.totals)
    return sorted(heapq.nsmallest(MAIN, counts, key=lambda class_id: (-counts[class_id], class_id)))


def _linked(trees: Iterable[Tree], attribute: str) -> dict[int, None]:
    """Return the traits or the aggregates of the providers of these trees, each of them once."""
    sets = {getattr(provider, attribute) for tree in trees for provider in tree.providers}
    return dict.fromkeys(id_ for ids in sets for id_ in ids)


def _providers(shown: Contents, trees: Iterable[Tree], kinds: _Kinds) -> Document:
    """Return the columns of the providers in the order of the trees, and of their inventories."""
    trait_sets: _Positions[frozenset[int]] = _Positions()
    aggregate_sets: _Positions[frozenset[int]] = _Positions()
    shapes: _Positions[ProviderInventory] = _Positions()
    columns: dict[str, list[Any]] = {
        name: []
        for name in ('name', 'uuid', 'generation', 'parent', 'traits', 'aggregates', 'inventories')
    }
    shape, used = [], []
    for tree in trees:
        columns['parent'] += tree.parents
        for provider in tree.providers:
            columns['name'].append(_text(shown.cloud.names[provider.id]))
            columns['uuid'].append(_text(provider.uuid))
            columns['generation'].append(shown.cloud.generations[provider.id])
            columns['traits'].append(trait_sets(provider.traits))
            columns['aggregates'].append(aggregate_sets(provider.aggregates))
            columns['inventories'].append(len(provider.inventories))
            for inventory in provider.inventories.values():
                shape.append(shapes(inventory._replace(used=0)))
                used.append(inventory.used)
    return {
        'providers': columns,
        'inventories': {'shape': shape, 'used': used},
        'trait_sets': [kinds.traits.positions(ids) for ids in trait_sets.values()],
        'aggregate_sets': [kinds.aggregates.positions(ids) for ids in aggregate_sets.values()],
        'shapes': _shapes(shapes.values(), kinds.classes),
    }


def _shapes(shapes: Sequence[ProviderInventory], classes: _Names) -> Document:
    """Return the columns of the different inventories, without their usage."""
    names = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')
    return {
        'class': [classes.position(shape.class_id) for shape in shapes],
        'capacity': [capacity(shape) for shape in shapes],
        **{name: [getattr(shape, name) for shape in shapes] for name in names},
    }


def _trees(shown: Contents, first: Sequence[Tree], kinds: _Kinds) -> Document:
    """Return the columns of the first trees, and of the sharing providers available to them."""
    positions = {
        provider.id: position
        for position, provider in enumerate(one for tree in first for one in tree.providers)
    }
    names, drains = shown.cloud.names, shown.drains
    served = Counter(one.id for tree in shown.trees for one in tree.sharing)
    providers: _Positions[int] = _Positions()
    sets: _Positions[tuple[int, ...]] = _Positions()
    sharing = [sets(tuple(providers(one.id) for one in tree.sharing)) for tree in first]
    uuids = {one.id: one.uuid for tree in first for one in tree.sharing}
    return {
        'all_trees': len(shown.trees),
        'trees': {
            'size': [len(tree.providers) for tree in first],
            'consumers': [len(shown.consumers.get(tree.root.id, ())) for tree in first],
            'fullest': [
                -1 if tree.fullest is None else kinds.classes.position(tree.fullest)
                for tree in first
            ],
            'sharing': sharing,
            'disabled': [int(tree.disabled) for tree in first],
            'drain': None if drains is None else [_drain(drains, tree) for tree in first],
        },
        'sharing_sets': sets.values(),
        'sharing_providers': {
            'name': [_text(names[id_]) for id_ in providers.values()],
            'uuid': [_text(uuids[id_]) for id_ in providers.values()],
            # -1 if the page does not show the provider.
            'position': [positions.get(id_, -1) for id_ in providers.values()],
            'trees': [served[id_] for id_ in providers.values()],
        },
    }


def _drain(drains: Mapping[str, Drain], tree: Tree) -> str:
    """Return whether a tree can be drained, and what is missing; empty without allocations."""
    drain = drains.get(tree.root.uuid)
    if drain is None:
        return ''
    if drain.fits:
        return 'yes'
    return f'{_NOT_DRAINABLE[drain.verdict]}: lacks {amounts(drain.missing)}'


def consumers(shown: Contents) -> Document:
    """Return the consumers of the shown trees: those with the largest usage of the fullest class.

    The page reads this document when it shows the first tree, because it can be large.
    """
    types: _Positions[str] = _Positions()
    projects: _Positions[str] = _Positions()
    amounts: _Positions[tuple[tuple[str, int], ...]] = _Positions()
    columns: dict[str, list[Any]] = {
        name: [] for name in ('size', 'name', 'type', 'project', 'amounts')
    }
    for tree in shown.trees[:TREES]:
        largest = _largest(shown.consumers.get(tree.root.id, ()), tree.fullest)
        columns['size'].append(len(largest))
        for one in largest:
            columns['name'].append(_text(one.name))
            columns['type'].append(types(_text(one.type)))
            columns['project'].append(projects(_text(one.project)))
            named = [
                (_text(shown.class_name(id_)), one.amounts[id_]) for id_ in sorted(one.amounts)
            ]
            columns['amounts'].append(amounts(tuple(named)))
    return {
        **columns,
        'types': types.values(),
        'projects': projects.values(),
        'amount_sets': amounts.values(),
    }


def _largest(found: Sequence[Consumer], class_id: int | None) -> list[Consumer]:
    """Return the consumers with the largest usage of a class, sorted by usage and name."""

    def key(one: Consumer) -> tuple[int, str]:
        return (0 if class_id is None else -one.amounts.get(class_id, 0), one.name)

    return heapq.nsmallest(CONSUMERS, found, key)


def _links(
    trees: Iterable[Tree], attribute: str, names: Mapping[int, str], classes: _Names
) -> Document:
    """Return the columns of aggregates or traits.

    An inventory counts for those of its provider and of the root provider.

    :param attribute: `aggregates` or `traits`
    """
    # PERF: many providers have the same links, so the sums are first formed by sets of links.
    by_links: dict[frozenset[int], Totals] = defaultdict(lambda: defaultdict(Total))
    counts: Counter[int] = Counter()
    for tree in trees:
        of_root = of_tree = getattr(tree.root, attribute)
        for provider in tree.providers:
            links = getattr(provider, attribute)
            if not links <= of_root:
                links |= of_root
                of_tree |= links
            else:
                links = of_root
            totals = by_links[links]
            for class_id, inventory in provider.inventories.items():
                totals[class_id].add(inventory, tree.disabled)
        counts.update(of_tree)
    sums: dict[int, list[Totals]] = defaultdict(list)
    for links, totals in by_links.items():
        for link in links:
            sums[link].append(totals)
    parts = [
        _Part(names.get(link) or f'unknown {link}', count, _sums(sums[link]))
        for link, count in counts.items()
    ]
    first = heapq.nsmallest(LINKS, parts, key=lambda part: (-part.count, part.name))
    return _parts(first, len(parts), classes)


def _projects(projects: Sequence[Project], sums: Totals, classes: _Names) -> Document:
    """Return the columns of the projects that use the largest share of the capacity of a class."""

    def key(project: Project) -> tuple[float, str]:
        shares = [
            used / sums[class_id].capacity
            for class_id, used in project.usage.items()
            if class_id in sums and sums[class_id].capacity
        ]
        return -max(shares, default=0.0), project.name

    first = [
        _Part(name, count, {class_id: Total(used=used) for class_id, used in usage.items()})
        for name, count, usage in heapq.nsmallest(PROJECTS, projects, key=key)
    ]
    return _parts(first, len(projects), classes)


def _parts(parts: Sequence[_Part], number: int, classes: _Names) -> Document:
    """Return the columns of aggregates, traits, or projects, and of their sums by class.

    :param number: the number of all of them, including those that are not shown
    """
    columns: dict[str, list[Any]] = {name: [] for name in ('part', 'class', *_SUMS)}
    for position, part in enumerate(parts):
        for class_id, total in part.totals.items():
            columns['part'].append(position)
            columns['class'].append(classes.position(class_id))
            for name in _SUMS:
                columns[name].append(getattr(total, name))
    return {
        'all': number,
        'name': [_text(part.name) for part in parts],
        'count': [part.count for part in parts],
        'totals': columns,
    }
