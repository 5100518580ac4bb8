"""Executes the statements of pages, and builds anchors from the returned rows.

An *anchor* is a provider tree together with the sharing providers available to it. `paging` decides
the size of each page, and from which page on the pages are strict. This module decides in which
order the statement of strict pages checks the slots.

This is the only module whose objects store a database connection. Other modules of the package
receive the connection as an argument.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
import functools
from typing import Any

import sqlalchemy as sa

from placement.candidates import (
    model,
    page_statements,
    provider_checks,
    sharing,
    tree_rows,
)
from placement.candidates.page_statements import PagedQuery

# A slot is a part of the query that exactly one provider serves. The statement of strict pages
# first checks the slots that the fewest anchors can serve. To find these slots, at most `_SAMPLE`
# anchors are examined, and at most `_SAMPLE_CHECKS` checks are made in total. One check compares
# one provider with one slot.
_SAMPLE = 64
_SAMPLE_CHECKS = 50_000

# A class is rare if at most one provider in this number has an inventory of it. The statement of
# strict pages then starts with all inventories of the class. PERF: if trees are narrower, it is
# faster to look up each member until the page is full.
_RARE = 32


class Reader:
    """Executes the statements of one request and builds anchors from the returned rows."""

    def __init__(
        self, conn: sa.Connection, query: model.Query[int], sharing_id: int | None
    ) -> None:
        self.sharing_providers = sharing.SharingProviders(sharing_id)
        self._conn = conn
        self._query = query
        self._sharing_id = sharing_id
        # The root ids of all trees that were read.
        self._read_roots: set[int] = set()

    def paged_query(self) -> PagedQuery:
        """Return the data that is the same for all pages.

        If suffixed groups have in_tree parameters, this method also reads the sharing providers in
        the trees that these parameters name.
        """
        roots = {
            group.in_tree
            for group in self._query.groups
            if group.suffix and group.in_tree not in (None, model.NO_SUCH_ROOT)
        }
        in_tree_aggregates: dict[int, frozenset[int]] = defaultdict(frozenset)
        if roots and self._sharing_id is not None:
            for provider in self._trees(roots, self._sharing_id):
                in_tree_aggregates[provider.root_id] |= provider.aggregates
        return PagedQuery(
            query=self._query,
            slots=model.slots_of(self._query),
            has_sharing=self._sharing_id is not None,
            in_tree_aggregates=in_tree_aggregates,
        )

    def read_page(
        self, statement: sa.Select[Any], parameters: Mapping[str, Any]
    ) -> tuple[list[int], tuple[model.Anchor, ...]]:
        """Execute the statement of a page.

        :returns: the ids of all roots that the statement returns, and the anchors of those roots
            that were not read before
        """
        providers = tree_rows.providers_of(self._conn.execute(statement, parameters))
        return list({provider.root_id for provider in providers}), self._anchors(providers)

    def root_ids(self, statement: sa.Select[Any], parameters: Mapping[str, Any]) -> list[int]:
        """Return the root ids that a statement of `page_statements` returns."""
        return list(self._conn.execute(statement, parameters).scalars())

    def read_trees(self, roots: Collection[int]) -> tuple[model.Anchor, ...]:
        """Return the anchors with these root ids, except for those that were read before."""
        return self._anchors(self._trees(set(roots) - self._read_roots))

    def _trees(
        self, root_ids: Collection[int], trait_id: int | None = None
    ) -> list[model.Provider]:
        """Return all providers of the trees with these roots.

        :param trait_id: return only providers with this trait; None for all
        """
        if not root_ids:
            return []
        return tree_rows.providers_of(self._conn.execute(page_statements.trees(root_ids, trait_id)))

    def _anchors(self, providers: Sequence[model.Provider]) -> tuple[model.Anchor, ...]:
        """Group these providers into trees, and return an anchor for each tree not read before.

        This method also reads the sharing providers that the new anchors need.
        """
        trees: dict[int, list[model.Provider]] = defaultdict(list)
        for provider in providers:
            trees[provider.root_id].append(provider)
        registry = self.sharing_providers
        if self._sharing_id is not None:
            registry.add(providers)
            if missing := registry.require(providers):
                registry.add(self._sharing_trees(self._sharing_id, missing), missing)
        anchors = []
        for root_id in sorted(trees.keys() - self._read_roots):
            tree = trees[root_id]
            root = tree[0] if len(tree) == 1 else _root_of(tree)
            anchors.append(model.Anchor(root, tuple(tree), registry.of_tree(root_id, tree)))
        self._read_roots.update(trees)
        return tuple(registry.with_trees(anchors) if self._query.same_subtrees else anchors)

    def read_all_sharing_providers(self, sharing_id: int) -> list[model.Provider]:
        """Read all sharing providers, so that no page reads any of them again; return them."""
        registry = self.sharing_providers
        registry.add_all(self._sharing_trees(sharing_id))
        return [p for tree in registry.trees.values() for p in tree if p.id in registry.ids]

    def _sharing_trees(
        self, sharing_id: int, aggregates: Collection[int] | None = None
    ) -> list[model.Provider]:
        """Return the providers of the trees of sharing providers that were not read yet.

        :param aggregates: only sharing providers in these aggregates; None for all
        """
        parameters = {
            'sharing_id': sharing_id,
            'excluded': sorted(self.sharing_providers.trees),
            'aggregates': sorted(aggregates or ()),
        }
        statement = page_statements.sharing_trees(of_all=aggregates is None)
        return tree_rows.providers_of(self._conn.execute(statement, parameters))

    def strict_roots(
        self, paged: PagedQuery, sample: Sequence[model.Anchor]
    ) -> page_statements.RootsOf | None:
        """Return a function that returns the statement for the root ids of strict pages.

        :param sample: the anchors to examine in order to find the slots that few anchors can serve
        :returns: None if sharing providers can serve the whole query
        """
        aggregates = None
        if self._sharing_id is not None:
            providers = self.read_all_sharing_providers(self._sharing_id)
            able = sharing.able_providers(providers, paged.slots)
            if all(able.values()):
                return None
            aggregates = sharing.sharing_aggregates(able, self._query)
        different = _most_demanding(paged.slots)
        sample = _limited(sample, len(different))
        slots = _scarce_first(different, sample)
        rare_classes = _rare_classes(sample, paged.slots)
        return functools.partial(
            page_statements.strict_roots, paged, slots, aggregates, rare_classes
        )


def _most_demanding(slots: Iterable[model.Slot]) -> Collection[model.Slot]:
    """Return one slot of each kind, without those that differ only in smaller amounts.

    A provider that can serve the largest amounts can usually serve smaller amounts, too.
    """
    most: dict[tuple[object, ...], model.Slot] = {}
    for slot in slots:
        key = slot.conditions, frozenset(class_id for class_id, _ in slot.amounts)
        if key not in most or sum(n for _, n in slot.amounts) > sum(
            n for _, n in most[key].amounts
        ):
            most[key] = slot
    return most.values()


def _rare_classes(anchors: Sequence[model.Anchor], slots: Iterable[model.Slot]) -> frozenset[int]:
    """Return the requested classes of which few providers of these trees have an inventory.

    If the trees are narrow, no class is returned.
    """
    providers = [provider for anchor in anchors for provider in anchor.tree]
    counts = Counter(class_id for provider in providers for class_id in provider.inventories)
    requested = {class_id for slot in slots for class_id, _ in slot.amounts}
    most = len(providers) // _RARE
    return frozenset(id_ for id_ in requested if max(counts[id_], len(anchors)) <= most)


def _scarce_first(slots: Iterable[model.Slot], anchors: Sequence[model.Anchor]) -> list[model.Slot]:
    """Return the slots, sorted by the number of anchors that can serve them, lowest first."""

    def key(slot: model.Slot) -> tuple[int, int]:
        count = sum(bool(provider_checks.eligible_providers(slot, anchor)) for anchor in anchors)
        # On a tie, the slot with the largest amount is first: large amounts (for example MEMORY_MB)
        # exceed the free capacity more often than small ones (for example VCPU).
        return count, -max((amount for _, amount in slot.amounts), default=0)

    return sorted(slots, key=key)


def _limited(anchors: Sequence[model.Anchor], slots: int) -> Sequence[model.Anchor]:
    """Return as many of the first anchors as `_SAMPLE` and `_SAMPLE_CHECKS` allow.

    :param slots: the number of slots that are checked for each provider
    """
    checks = 0
    for number, anchor in enumerate(anchors[:_SAMPLE]):
        checks += slots * (len(anchor.tree) + len(anchor.sharing_providers))
        if checks > _SAMPLE_CHECKS:
            return anchors[:number]
    return anchors[:_SAMPLE]


def _root_of(tree: Iterable[model.Provider]) -> model.Provider:
    return next(provider for provider in tree if provider.id == provider.root_id)
