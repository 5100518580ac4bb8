"""Renders the page: one HTML file with the style sheet, the scripts, and the data.

The page makes no request. A Content-Security-Policy in the page forbids requests, and allows only
its own style sheet and scripts, which it names by their hashes. All data is either escaped by the
template or part of a JSON document, which the scripts insert as text.

The documents are columnar: each property of all providers is one list, and equal sets of traits,
equal sets of aggregates, and equal inventories are stored once. They contain no database ids. The
positions of classes, traits, aggregates, and providers in their lists replace them.
"""

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
import hashlib
import heapq
from importlib import resources
from typing import Any

import jinja2
import orjson

from placement.admin import audit
from placement.admin.audit.model import CODES
from placement.admin.console import count, printable
from placement.admin.drain.render import amounts
from placement.admin.drain.report import IMPOSSIBLE, NOT_FOUND, Drain
from placement.admin.report import contents
from placement.admin.report.contents import Amounts, Contents, Part, Totals, Tree

_ASSETS = resources.files(__package__) / 'assets'
# In this order, the scripts form one program.
SCRIPTS = ('data', 'elements', 'bands', 'map', 'table', 'parts', 'details', 'main')
# The bands of `bands.js` for a fullness above 0.9, and above 1.
_NEARLY_FULL, _OVER = 5, 6
# The table and the map show at most this number of trees.
TREES = 20_000
# The page lists at most this number of consumers of a tree.
CONSUMERS = 200
# The number of aggregates, of traits, and of projects that the page shows.
LINKS, PROJECTS = 1000, 100
# A tree is nearly full above this fullness, as in `bands.js`.
NEARLY_FULL = 0.9
# The sums of inventories that the page shows.
_SUMS = ('capacity', 'used', 'free', 'reserved', 'nominal')
# The words for a drain that does not fit.
_NOT_DRAINABLE = {IMPOSSIBLE: 'no', NOT_FOUND: 'no plan'}
# The columns of inventories without the class, capacity, and usage.
_INVENTORY = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')

Document = dict[str, Any]
# Value -> its position.
Positions = dict[Any, int]


def render(shown: Contents) -> bytes:
    """Return the page in UTF-8."""
    text = _template().render(
        style=_asset('style.css'),
        script=_program(),
        documents={'data': data(shown), 'consumers': consumers(shown)},
        shown=shown,
        time=shown.time.strftime('%Y-%m-%d %H:%M:%S UTC'),
        verdict=verdict(shown),
        limit=TREES,
        findings=[(finding, *_table(finding)) for finding in shown.findings],
        codes=CODES,
    )
    return text.encode()


def verdict(shown: Contents) -> Iterator[tuple[str, str, int | None]]:
    """Yield the parts of the verdict; the first ones count hosts and pools as the legend does.

    Each part is a text, the section to which it leads, and the band of the legend that it selects.
    """
    enabled = [tree for tree in shown.trees if not tree.disabled]
    over = [tree for tree in enabled if tree.fullness > 1]
    nearly = [tree for tree in enabled if NEARLY_FULL < tree.fullness <= 1]
    first = _counted(over)
    text = f'{first[0].upper()}{first[1:]} over capacity'
    yield text, '#map', _OVER if over else None
    yield f'{_counted(nearly)} above 90 %', '#map', _NEARLY_FULL if nearly else None
    if shown.drains is not None:
        hosts = [drain.fits for drain in shown.drains.values() if not drain.is_pool]
        text = f'{sum(hosts):,} of {count(len(hosts), "host")} can be drained'
        yield text, '#providers', None
    for one in shown.headroom:
        yield printable(one.verdict), '#headroom', None
    found = sum(finding.count for finding in shown.findings)
    yield count(found, 'finding') if found else 'no findings', '#findings', None


def _counted(trees: Iterable[Tree]) -> str:
    """Return the numbers of hosts and pools."""
    pools = [tree.is_pool for tree in trees]
    numbers = {'host': pools.count(False), 'pool': pools.count(True)}
    return ' and '.join(count(n, noun) for noun, n in numbers.items() if n) or 'no host'


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding='utf-8')


def _program() -> str:
    """Return all scripts as one function, so that they add nothing to the global scope."""
    scripts = '\n'.join(_asset(f'{name}.js') for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{scripts}\n}})();\n'


def _source(text: str) -> str:
    """Return the source expression of an inline style sheet or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number='{:,}'.format, printable=printable, source=_source)
    environment.policies['json.dumps_kwargs'] = {'separators': (',', ':')}
    return environment.from_string(_asset('page.html.j2'))


def _table(finding: audit.Finding) -> tuple[list[str], list[list[str]]]:
    """Return the titles and the cells of a table of the rows of a finding."""
    titles = list(dict.fromkeys(title for row in finding.rows for title in row))
    return titles, [[_cell(row.get(title)) for title in titles] for row in finding.rows]


def _cell(value: Any) -> str:
    if value is None:
        return ''
    return printable(value if isinstance(value, str) else orjson.dumps(value, default=str).decode())


# Documents -----------------------------------------------------------------------


def _positions(values: Iterable[Any]) -> Positions:
    """Return the positions of values without repetitions."""
    return {value: position for position, value in enumerate(dict.fromkeys(values))}


def _encoded(values: Iterable[Any]) -> tuple[list[int], list[Any]]:
    """Return for each value its position among the different values, and these values."""
    positions: Positions = {}
    return [positions.setdefault(value, len(positions)) for value in values], list(positions)


def _text(name: str) -> str:
    """Return a name without control characters; a name of blanks only is quoted."""
    return printable(name if name.strip() or not name else f"'{name}'")


def data(shown: Contents) -> Document:
    """Return the document with everything but the consumers."""
    totals = contents.summed(item for tree in shown.trees for item in tree.totals.items())
    classes = _positions([*sorted(totals), *(class_id for _, class_id, _ in shown.cloud.usage)])
    return {
        'classes': [_text(shown.cloud.class_name(class_id)) for class_id in classes],
        'class_totals': {
            name: [totals[class_id][name] for class_id in sorted(totals)]
            for name in ('inventories', *_SUMS)
        },
        **_providers(shown, classes),
        **_trees(shown, classes),
        'parts': {
            'aggregate': _links(shown.trees, 'aggregates', shown.cloud.aggregates, classes),
            'trait': _links(shown.trees, 'traits', shown.cloud.traits, classes),
            'project': _projects(shown.projects, totals, classes),
        },
    }


def _providers(shown: Contents, classes: Positions) -> Document:
    """Return the columns of the providers in the order of the trees, and of their inventories."""
    cloud, first = shown.cloud, shown.trees[:TREES]
    providers = [one for tree in first for one in tree.providers]
    inventories = [inventory for one in providers for inventory in one.inventories.values()]
    trait_sets, different_traits = _encoded(one.traits for one in providers)
    aggregate_sets, different_aggregates = _encoded(one.aggregates for one in providers)
    shapes, different_shapes = _encoded(one._replace(used=0) for one in inventories)
    return {
        'providers': {
            'name': [_text(cloud.names[one.id]) for one in providers],
            'uuid': [_text(one.uuid) for one in providers],
            'generation': [cloud.generations[one.id] for one in providers],
            'parent': [parent for tree in first for parent in tree.parents],
            'traits': trait_sets,
            'aggregates': aggregate_sets,
            'inventories': [len(one.inventories) for one in providers],
        },
        'inventories': {'shape': shapes, 'used': [one.used for one in inventories]},
        **_sets('trait', different_traits, cloud.traits),
        **_sets('aggregate', different_aggregates, cloud.aggregates),
        'shapes': {
            'class': [classes[one.class_id] for one in different_shapes],
            'capacity': [int(one.capacity) for one in different_shapes],
            **{name: [getattr(one, name) for one in different_shapes] for name in _INVENTORY},
        },
    }


def _sets(kind: str, sets: Iterable[frozenset[int]], names_of: Mapping[int, str]) -> Document:
    """Return the names of all ids, and for each set the positions of its names."""
    positions = _positions(id_ for ids in sets for id_ in ids)
    return {
        f'{kind}s': [_text(names_of.get(id_) or f'unknown {id_}') for id_ in positions],
        f'{kind}_sets': [[positions[id_] for id_ in ids] for ids in sets],
    }


def _trees(shown: Contents, classes: Positions) -> Document:
    """Return the columns of the first trees, and of the sharing providers available to them."""
    first, drains = shown.trees[:TREES], shown.drains
    shown_at = _positions(one.id for tree in first for one in tree.providers)
    served = Counter(one.id for tree in shown.trees for one in tree.sharing)
    sharing = _positions(one.id for tree in first for one in tree.sharing)
    return {
        'trees': {
            'size': [len(tree.providers) for tree in first],
            'consumers': [len(shown.consumers.get(tree.root.id, ())) for tree in first],
            'fullest': [classes.get(tree.fullest, -1) for tree in first],
            'sharing': [[sharing[one.id] for one in tree.sharing] for tree in first],
            'disabled': [int(tree.disabled) for tree in first],
            'drain': None if drains is None else [_drain(drains, tree) for tree in first],
        },
        'sharing_providers': {
            'name': [_text(shown.cloud.names[id_]) for id_ in sharing],
            # -1 if the page does not show the provider.
            'position': [shown_at.get(id_, -1) for id_ in sharing],
            'trees': [served[id_] for id_ in sharing],
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
    of_trees = [_largest(shown, tree) for tree in shown.trees[:TREES]]
    found = [one for of_tree in of_trees for one in of_tree]
    types, different_types = _encoded(_text(one.type) for one in found)
    projects, different_projects = _encoded(_text(one.project) for one in found)
    amount_sets, different_amounts = _encoded(
        tuple((_text(shown.cloud.class_name(id_)), one.amounts[id_]) for id_ in sorted(one.amounts))
        for one in found
    )
    return {
        'size': list(map(len, of_trees)),
        'name': [_text(one.name) for one in found],
        'type': types,
        'project': projects,
        'amounts': amount_sets,
        'types': different_types,
        'projects': different_projects,
        'amount_sets': different_amounts,
    }


def _largest(shown: Contents, tree: Tree) -> list[contents.Consumer]:
    """Return the consumers with the largest usage of the fullest class, by usage and name."""

    def key(one: contents.Consumer) -> tuple[int, str]:
        return (0 if tree.fullest is None else -one.amounts.get(tree.fullest, 0), one.name)

    return heapq.nsmallest(CONSUMERS, shown.consumers.get(tree.root.id, ()), key)


def _links(
    trees: Iterable[Tree], attribute: str, names: Mapping[int, str], classes: Positions
) -> Document:
    """Return the columns of aggregates or traits.

    An inventory counts for those of its provider and of the root provider.

    :param attribute: `aggregates` or `traits`
    """
    # PERF: many providers have the same links, so the sums are first formed by sets of links.
    by_links: dict[frozenset[int], list[Amounts]] = defaultdict(list)
    counts: Counter[int] = Counter()
    for tree in trees:
        of_root = of_tree = getattr(tree.root, attribute)
        for provider in tree.providers:
            links = of_root | getattr(provider, attribute)
            of_tree |= links
            by_links[links] += contents.amounts(provider, tree.disabled)
        counts.update(of_tree)
    of_links: dict[int, list[Amounts]] = defaultdict(list)
    for links, found in by_links.items():
        totals = contents.summed(found)
        for link in links:
            of_links[link] += totals.items()
    parts = [
        Part(names.get(link) or f'unknown {link}', count, contents.summed(of_links[link]))
        for link, count in counts.items()
    ]
    first = heapq.nsmallest(LINKS, parts, key=lambda part: (-part.number, part.name))
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
    totals = [
        (position, class_id, total)
        for position, part in enumerate(parts)
        for class_id, total in part.totals.items()
    ]
    return {
        'all': number,
        'name': [_text(part.name) for part in parts],
        'count': [part.number for part in parts],
        'totals': {
            'part': [position for position, _, _ in totals],
            'class': [classes[class_id] for _, class_id, _ in totals],
            **{name: [total[name] for _, _, total in totals] for name in _SUMS},
        },
    }
