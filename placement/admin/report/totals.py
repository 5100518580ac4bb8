"""Sums of inventories: by resource class, by aggregate, and by trait; and the largest projects."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
import heapq

from placement.admin.report.model import Cloud, Provider, Total, Totals, Tree

# The number of aggregates, of traits, and of projects that the page shows.
LINKS, PROJECTS = 1000, 100
# The number of resource classes with a column of their own in the table of providers.
MAIN = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the cloud: an aggregate, a trait, or a project.

    :ivar count: the number of trees of an aggregate or a trait, or of consumers of a project
    :ivar totals: resource class id -> sums; of a project, only the usage
    """

    name: str
    count: int
    totals: Totals


@dataclass(frozen=True, slots=True)
class Parts:
    """The largest parts of one kind.

    :ivar number: the number of all parts, including those that are not shown
    """

    shown: Sequence[Part]
    number: int


def by_class(trees: Iterable[Tree]) -> Totals:
    """Return the sums of all inventories of each resource class."""
    totals: Totals = defaultdict(Total)
    for tree in trees:
        for class_id, total in tree.totals.items():
            totals[class_id].include(total)
    return totals


def classes(trees: Iterable[Tree]) -> list[int]:
    """Return the ids of all resource classes with inventories, the standard ones first."""
    return sorted({class_id for tree in trees for class_id in tree.totals})


def main_classes(trees: Iterable[Tree]) -> list[int]:
    """Return the ids of the `MAIN` resource classes that the most trees have."""
    counts = Counter(class_id for tree in trees for class_id in tree.totals)
    return sorted(heapq.nsmallest(MAIN, counts, key=lambda class_id: (-counts[class_id], class_id)))


def by_aggregate(trees: Iterable[Tree], cloud: Cloud) -> Parts:
    """Return the sums by aggregate.

    An inventory counts for the aggregates of its provider and of the root provider.
    """
    return _by_link(trees, lambda provider: provider.aggregates, cloud.aggregates.get)


def by_trait(trees: Iterable[Tree], cloud: Cloud) -> Parts:
    """Return the sums by trait.

    An inventory counts for the traits of its provider and of the root provider.
    """
    return _by_link(trees, lambda provider: provider.traits, cloud.traits.get)


def _by_link(
    trees: Iterable[Tree],
    links_of: Callable[[Provider], frozenset[int]],
    name_of: Callable[[int], str | None],
) -> Parts:
    # PERF: many providers have the same links, so the sums are first formed by sets of links.
    by_links: dict[frozenset[int], Totals] = defaultdict(lambda: defaultdict(Total))
    tree_counts: Counter[frozenset[int]] = Counter()
    for tree in trees:
        of_root = links_of(tree.root)
        of_tree = {of_root}
        for provider in tree.providers:
            links = links_of(provider)
            links = of_root if links <= of_root else links | of_root
            of_tree.add(links)
            totals = by_links[links]
            for class_id, inventory in provider.inventories.items():
                totals[class_id].add(inventory, tree.disabled)
        tree_counts[frozenset().union(*of_tree) if len(of_tree) > 1 else of_root] += 1
    counts: Counter[int] = Counter()
    for links, count in tree_counts.items():
        for link in links:
            counts[link] += count
    sums: dict[int, Totals] = {link: defaultdict(Total) for link in counts}
    for links, totals in by_links.items():
        for link in links:
            for class_id, total in totals.items():
                sums[link][class_id].include(total)
    parts = [
        Part(name_of(link) or f'unknown {link}', counts[link], totals)
        for link, totals in sums.items()
    ]
    return Parts(
        heapq.nsmallest(LINKS, parts, key=lambda part: (-part.count, part.name)), len(parts)
    )


def largest_projects(cloud: Cloud, totals: Totals) -> Parts:
    """Return the projects that use the largest share of the capacity of some class first."""
    usage: dict[str, Totals] = defaultdict(dict)
    shares: dict[str, float] = defaultdict(float)
    for row in cloud.projects:
        usage[row.project][row.class_id] = Total(used=row.used)
        if (total := totals.get(row.class_id)) is not None and total.capacity:
            shares[row.project] = max(shares[row.project], row.used / total.capacity)
    parts = [
        Part(project, count, usage[project])
        for project, count in cloud.project_consumers.items()
        if project in usage
    ]
    shown = heapq.nsmallest(PROJECTS, parts, key=lambda part: (-shares[part.name], part.name))
    return Parts(shown, len(parts))
