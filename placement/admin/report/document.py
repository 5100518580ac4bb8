"""Converts the data of a report to the JSON document that the scripts of the page read.

The document is columnar: each property of all providers is one list, and equal sets of traits,
equal sets of aggregates, and equal inventories are stored once. It contains no database ids. The
positions of classes, traits, aggregates, and providers in their lists replace them.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
import heapq
from typing import Any, Generic, TypeVar

from placement.admin.drain.render import amounts
from placement.admin.drain.report import IMPOSSIBLE, NOT_FOUND, Drain
from placement.admin.report import totals
from placement.admin.report.model import Cloud, Consumer, Tree, capacity
from placement.admin.tables import printable
from placement.candidates.model import ProviderInventory

# The table and the map show at most this number of trees.
TREES = 20_000
# The page lists at most this number of consumers of a tree.
CONSUMERS = 200
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


def build(cloud: Cloud, trees: Sequence[Tree]) -> Document:
    """Return the document.

    :param trees: all trees, the fullest first
    """
    shown = trees[:TREES]
    sums = totals.by_class(trees)
    used = totals.classes(trees)
    kinds = _Kinds(
        _Names(dict.fromkeys([*used, *(row.class_id for row in cloud.projects)]), cloud.class_name),
        _Names(_linked(shown, 'traits'), lambda id_: cloud.traits.get(id_, f'unknown {id_}')),
        _Names(
            _linked(shown, 'aggregates'),
            lambda id_: cloud.aggregates.get(id_) or f'unknown {id_}',
        ),
    )
    return {
        'classes': kinds.classes.names,
        'main_classes': [kinds.classes.position(id_) for id_ in totals.main_classes(trees)],
        'class_totals': {
            name: [getattr(sums[id_], name) for id_ in used] for name in ('inventories', *_SUMS)
        },
        'traits': kinds.traits.names,
        'aggregates': kinds.aggregates.names,
        **_providers(cloud, shown, kinds),
        **_trees(cloud, trees, shown, kinds),
        'parts': {
            'aggregate': _parts(totals.by_aggregate(trees, cloud), kinds.classes),
            'trait': _parts(totals.by_trait(trees, cloud), kinds.classes),
            'project': _parts(totals.largest_projects(cloud, sums), kinds.classes),
        },
    }


def _linked(trees: Iterable[Tree], attribute: str) -> dict[int, None]:
    """Return the traits or the aggregates of the providers of these trees, each of them once."""
    sets = {getattr(provider, attribute) for tree in trees for provider in tree.providers}
    return dict.fromkeys(id_ for ids in sets for id_ in ids)


def _providers(cloud: Cloud, trees: Iterable[Tree], kinds: _Kinds) -> Document:
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
            columns['name'].append(_text(cloud.names[provider.id]))
            columns['uuid'].append(_text(provider.uuid))
            columns['generation'].append(cloud.generations[provider.id])
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


def _trees(cloud: Cloud, trees: Iterable[Tree], shown: Sequence[Tree], kinds: _Kinds) -> Document:
    """Return the columns of the shown trees, and of the sharing providers available to them."""
    position = 0
    positions = {}
    for tree in shown:
        for provider in tree.providers:
            positions[provider.id] = position
            position += 1
    drains = cloud.drains
    served = Counter(provider for tree in trees for provider in _keys(tree))
    names: _Positions[int] = _Positions()
    sets: _Positions[tuple[int, ...]] = _Positions()
    sharing = [sets(tuple(map(names, _keys(tree)))) for tree in shown]
    uuids = {provider.id: provider.uuid for tree in trees for provider in tree.sharing}
    return {
        'all_trees': sum(1 for _ in trees),
        'trees': {
            'size': [len(tree.providers) for tree in shown],
            'consumers': [len(_consumers_of(tree, cloud)) for tree in shown],
            'fullest': [
                -1 if tree.fullest is None else kinds.classes.position(tree.fullest)
                for tree in shown
            ],
            'sharing': sharing,
            'disabled': [int(tree.disabled) for tree in shown],
            'drain': None if drains is None else [_drain(drains, tree) for tree in shown],
        },
        'sharing_sets': sets.values(),
        'sharing_providers': {
            'name': [_text(cloud.names[id_]) for id_ in names.values()],
            'uuid': [_text(uuids[id_]) for id_ in names.values()],
            # -1 if the page does not show the provider.
            'position': [positions.get(id_, -1) for id_ in names.values()],
            'trees': [served[id_] for id_ in names.values()],
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


def consumers(cloud: Cloud, trees: Sequence[Tree]) -> Document:
    """Return the consumers of the shown trees: those with the largest usage of the fullest class.

    The page reads this document when it shows the first tree, because it can be large.
    """
    types: _Positions[str] = _Positions()
    projects: _Positions[str] = _Positions()
    amounts: _Positions[tuple[tuple[str, int], ...]] = _Positions()
    columns: dict[str, list[Any]] = {
        name: [] for name in ('size', 'name', 'type', 'project', 'amounts')
    }
    for tree in trees[:TREES]:
        largest = _largest(_consumers_of(tree, cloud), tree.fullest)
        columns['size'].append(len(largest))
        for one in largest:
            columns['name'].append(_text(one.name))
            columns['type'].append(types(_text(one.type)))
            columns['project'].append(projects(_text(one.project)))
            named = [
                (_text(cloud.class_name(id_)), one.amounts[id_]) for id_ in sorted(one.amounts)
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


def _consumers_of(tree: Tree, cloud: Cloud) -> Sequence[Consumer]:
    return cloud.consumers.get(tree.root.id, ())


def _keys(tree: Tree) -> tuple[int, ...]:
    return tuple(provider.id for provider in tree.sharing)


def _parts(parts: totals.Parts, classes: _Names) -> Document:
    """Return the columns of aggregates, traits, or projects, and of their sums by class."""
    columns: dict[str, list[Any]] = {name: [] for name in ('part', 'class', *_SUMS)}
    for position, part in enumerate(parts.shown):
        for class_id, total in part.totals.items():
            columns['part'].append(position)
            columns['class'].append(classes.position(class_id))
            for name in _SUMS:
                columns[name].append(getattr(total, name))
    return {
        'all': parts.number,
        'name': [_text(part.name) for part in parts.shown],
        'count': [part.count for part in parts.shown],
        'totals': columns,
    }
