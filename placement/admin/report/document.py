"""Converts the data of a report to the JSON document that the scripts of the page read.

The document is columnar: each property of all providers is one list, and equal sets of traits,
equal sets of aggregates, and equal inventories are stored once. It contains no database ids. The
positions of classes, traits, aggregates, and providers in their lists replace them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
import heapq
import itertools
from typing import Any

from placement.admin.console import printable
from placement.admin.drain.render import amounts
from placement.admin.drain.report import IMPOSSIBLE, NOT_FOUND, Drain
from placement.admin.report.contents import (
    Consumer,
    Contents,
    Part,
    Totals,
    Tree,
    capacity,
    sums,
)

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
# The columns of providers, and those of inventories without the class, capacity, and usage.
_PROVIDER = ('name', 'uuid', 'generation', 'parent', 'traits', 'aggregates', 'inventories')
_INVENTORY = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')

Document = dict[str, Any]
# Value -> its position. A missing value gets the next position when it is read.
Positions = defaultdict[Any, int]


def _positions(values: Iterable[Any] = ()) -> Positions:
    """Return the positions of values without repetitions."""
    found: Positions = defaultdict(itertools.count().__next__)
    for value in values:
        found[value]  # adds the value
    return found


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Document:
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _text(name: str) -> str:
    """Return a name without control characters; a name of blanks only is quoted."""
    return printable(name if name.strip() or not name else f"'{name}'")


def build(shown: Contents) -> Document:
    """Return the document."""
    totals = _sum(tree.totals for tree in shown.trees)
    classes = _positions([*sorted(totals), *(class_id for _, class_id, _ in shown.cloud.usage)])
    traits, aggregates = shown.cloud.traits, shown.cloud.aggregates
    return {
        'classes': [_text(shown.cloud.class_name(class_id)) for class_id in classes],
        'main_classes': [classes[class_id] for class_id in _main_classes(shown.trees)],
        'class_totals': {
            name: [totals[class_id][name] for class_id in sorted(totals)]
            for name in ('inventories', *_SUMS)
        },
        **_providers(shown, classes),
        **_trees(shown, classes),
        'parts': {
            'aggregate': _links(shown.trees, 'aggregates', aggregates, classes),
            'trait': _links(shown.trees, 'traits', traits, classes),
            'project': _projects(shown.projects, totals, classes),
        },
    }


def _sum(all_totals: Iterable[Totals]) -> Totals:
    """Return the sums of several trees."""
    result: Totals = defaultdict(Counter)
    for totals in all_totals:
        for class_id, total in totals.items():
            result[class_id].update(total)
    return result


def _main_classes(trees: Iterable[Tree]) -> list[int]:
    """Return the ids of the `MAIN` resource classes that the most trees have."""
    counts = Counter(class_id for tree in trees for class_id in tree.totals)
    return sorted(heapq.nsmallest(MAIN, counts, key=lambda class_id: (-counts[class_id], class_id)))


def _providers(shown: Contents, classes: Positions) -> Document:
    """Return the columns of the providers in the order of the trees, and of their inventories."""
    cloud, first = shown.cloud, shown.trees[:TREES]
    trait_sets, aggregate_sets, shapes = _positions(), _positions(), _positions()
    providers = [
        (
            _text(cloud.names[one.id]),
            _text(one.uuid),
            cloud.generations[one.id],
            parent,
            trait_sets[one.traits],
            aggregate_sets[one.aggregates],
            len(one.inventories),
        )
        for tree in first
        for one, parent in zip(tree.providers, tree.parents, strict=True)
    ]
    inventories = [
        (shapes[inventory._replace(used=0)], inventory.used)
        for tree in first
        for one in tree.providers
        for inventory in one.inventories.values()
    ]
    columns_of_shapes = [
        (classes[one.class_id], capacity(one), *(getattr(one, name) for name in _INVENTORY))
        for one in shapes
    ]
    return {
        'providers': _columns(_PROVIDER, providers),
        'inventories': _columns(('shape', 'used'), inventories),
        **_sets('trait', trait_sets, cloud.traits),
        **_sets('aggregate', aggregate_sets, cloud.aggregates),
        'shapes': _columns(('class', 'capacity', *_INVENTORY), columns_of_shapes),
    }


def _sets(kind: str, sets: Collection[frozenset[int]], names_of: Mapping[int, str]) -> Document:
    """Return the names of all ids, and for each set the positions of its names, sorted by name."""
    positions = _positions(id_ for ids in sets for id_ in ids)
    names = [_text(names_of.get(id_) or f'unknown {id_}') for id_ in positions]
    return {
        f'{kind}s': names,
        f'{kind}_sets': [
            sorted((positions[id_] for id_ in ids), key=names.__getitem__) for ids in sets
        ],
    }


def _trees(shown: Contents, classes: Positions) -> Document:
    """Return the columns of the first trees, and of the sharing providers available to them."""
    first, drains = shown.trees[:TREES], shown.drains
    shown_at = _positions(one.id for tree in first for one in tree.providers)
    served = Counter(one.id for tree in shown.trees for one in tree.sharing)
    sharing, sets = _positions(), _positions()
    trees = [
        (
            len(tree.providers),
            len(shown.consumers.get(tree.root.id, ())),
            -1 if tree.fullest is None else classes[tree.fullest],
            sets[tuple(sharing[one.id, one.uuid] for one in tree.sharing)],
            int(tree.disabled),
        )
        for tree in first
    ]
    # The position is -1 if the page does not show the provider.
    providers = [
        (_text(shown.cloud.names[id_]), _text(uuid), shown_at.get(id_, -1), served[id_])
        for id_, uuid in sharing
    ]
    return {
        'all_trees': len(shown.trees),
        'trees': {
            **_columns(('size', 'consumers', 'fullest', 'sharing', 'disabled'), trees),
            'drain': None if drains is None else [_drain(drains, tree) for tree in first],
        },
        'sharing_sets': list(sets),
        'sharing_providers': _columns(('name', 'uuid', 'position', 'trees'), providers),
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
    types, projects, amount_sets = _positions(), _positions(), _positions()
    of_trees = [
        _largest(shown.consumers.get(tree.root.id, ()), tree.fullest)
        for tree in shown.trees[:TREES]
    ]
    rows = [
        (
            _text(one.name),
            types[_text(one.type)],
            projects[_text(one.project)],
            amount_sets[
                tuple(
                    (_text(shown.cloud.class_name(id_)), one.amounts[id_])
                    for id_ in sorted(one.amounts)
                )
            ],
        )
        for of_tree in of_trees
        for one in of_tree
    ]
    return {
        'size': list(map(len, of_trees)),
        **_columns(('name', 'type', 'project', 'amounts'), rows),
        'types': list(types),
        'projects': list(projects),
        'amount_sets': list(amount_sets),
    }


def _largest(found: Sequence[Consumer], class_id: int | None) -> list[Consumer]:
    """Return the consumers with the largest usage of a class, sorted by usage and name."""

    def key(one: Consumer) -> tuple[int, str]:
        return (0 if class_id is None else -one.amounts.get(class_id, 0), one.name)

    return heapq.nsmallest(CONSUMERS, found, key)


def _links(
    trees: Iterable[Tree], attribute: str, names: Mapping[int, str], classes: Positions
) -> Document:
    """Return the columns of aggregates or traits.

    An inventory counts for those of its provider and of the root provider.

    :param attribute: `aggregates` or `traits`
    """
    # PERF: many providers have the same links, so the sums are first formed by sets of links.
    by_links: dict[frozenset[int], Totals] = defaultdict(lambda: defaultdict(Counter))
    counts: Counter[int] = Counter()
    for tree in trees:
        of_root = of_tree = getattr(tree.root, attribute)
        for provider in tree.providers:
            links = of_root | getattr(provider, attribute)
            of_tree |= links
            totals = by_links[links]
            for class_id, inventory in provider.inventories.items():
                totals[class_id].update(sums(inventory, tree.disabled))
        counts.update(of_tree)
    of_links: dict[int, list[Totals]] = defaultdict(list)
    for links, totals in by_links.items():
        for link in links:
            of_links[link].append(totals)
    parts = [
        Part(names.get(link) or f'unknown {link}', count, _sum(of_links[link]))
        for link, count in counts.items()
    ]
    first = heapq.nsmallest(LINKS, parts, key=lambda part: (-part.count, part.name))
    return _parts(first, len(parts), classes)


def _projects(projects: Sequence[Part], totals: Totals, classes: Positions) -> Document:
    """Return the columns of the projects that use the largest share of the capacity of a class."""

    def key(project: Part) -> tuple[float, str]:
        shares = [
            total['used'] / totals[class_id]['capacity']
            for class_id, total in project.totals.items()
            if class_id in totals and totals[class_id]['capacity']
        ]
        return -max(shares, default=0.0), project.name

    return _parts(heapq.nsmallest(PROJECTS, projects, key=key), len(projects), classes)


def _parts(parts: Sequence[Part], number: int, classes: Positions) -> Document:
    """Return the columns of aggregates, traits, or projects, and of their sums by class.

    :param number: the number of all of them, including those that are not shown
    """
    rows = [
        (position, classes[class_id], *(total[name] for name in _SUMS))
        for position, part in enumerate(parts)
        for class_id, total in part.totals.items()
    ]
    return {
        'all': number,
        'name': [_text(part.name) for part in parts],
        'count': [part.count for part in parts],
        'totals': _columns(('part', 'class', *_SUMS), rows),
    }
