"""What the database knows, read page by page: the only part of the search with a connection.

A `Source` belongs to one request. It gives `Snapshot`s, which are immutable: a page of
anchors with their trees and the sharing providers in reach. Sharing providers are read when
the first tree in one of their aggregates turns up, and kept until the request ends.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
import random
from typing import Any

import orjson
import sqlalchemy as sa

from placement.candidates import eligibility, model, request, root_tests, statements
from placement.db import names as db_names

_NOTHING: frozenset[int] = frozenset()
# Anchors that are enough to tell what is scarce, and how many checks of a provider for a slot.
_SAMPLE = 64
_SAMPLE_CHECKS = 50_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A page: the anchors in the order in which they are to be tried."""

    anchors: tuple[model.Anchor, ...]
    # Whether pages follow.
    more: bool


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What `Source.read_ahead` read."""

    # All providers by the id of their root.
    trees: Mapping[int, Sequence[model.Provider]]
    class_names: dict[int, str]
    trait_names: dict[int, str]


class _Sets:
    """Makes sets of ids from JSON text; equal text, which is common, gives the same set."""

    def __init__(self) -> None:
        self._made: dict[str | None, frozenset[int]] = {None: _NOTHING}

    def __call__(self, text: str | None) -> frozenset[int]:
        made = self._made.get(text)
        if made is None:
            made = self._made[text] = frozenset(orjson.loads(text or '[]'))
        return made


def providers_of(rows: Iterable[Sequence[Any]]) -> list[model.Provider]:
    """Providers from rows of `statements.facts`."""
    sets = _Sets()
    make, loads = model.Stock._make, orjson.loads
    return [
        model.Provider(
            id_,
            uuid,
            root_id,
            parent_id,
            sets(traits),
            sets(aggregates),
            {record[0]: make(record) for record in loads(stock)} if stock else {},
        )
        for id_, uuid, root_id, parent_id, traits, aggregates, stock in rows
    ]


def lookup(conn: sa.Connection, query: model.Query[str]) -> tuple[model.Query[int], int | None]:
    """Ids for the names of a query, and the id of the sharing trait when anybody has it.

    Raises what `request.bind` raises for names that do not exist.
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    statement, requested = statements.lookup(query)
    for kind, name, id_ in conn.execute(statement, requested):
        if id_ is not None:  # a provider without a root
            found[kind][name] = id_
    # Classes and traits have to be named as they are stored. UUIDs are what the database takes for
    # equal.
    kinds = [kind for kind in (statements.AGGREGATE, statements.TREE) if kind in requested]
    lookups = [
        db_names.Lookup(*statements.NAMED[kind], requested[kind], found[kind]) for kind in kinds
    ]
    known = dict(zip(kinds, db_names.resolve(conn, lookups), strict=True))
    ids = request.Ids(
        classes=found[statements.CLASS],
        traits=found[statements.TRAIT],
        aggregates=known.get(statements.AGGREGATE, {}),
        roots=known.get(statements.TREE, {}),
    )
    return request.bind(query, ids), next(iter(found[statements.SHARING].values()), None)


def names(
    conn: sa.Connection, class_ids: Collection[int], trait_ids: Collection[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """The names of resource classes and of traits."""
    found: dict[str, dict[int, str]] = {statements.CLASS: {}, statements.TRAIT: {}}
    if class_ids or trait_ids:
        for kind, name, id_ in conn.execute(*statements.names(class_ids, trait_ids)):
            found[kind][id_] = name
    return found[statements.CLASS], found[statements.TRAIT]


class Source:
    """Pages of anchors for one query."""

    def __init__(
        self,
        conn: sa.Connection,
        query: model.Query[int],
        sharing_id: int | None,
        rng: random.Random | None = None,
    ):
        """:param rng: draws the tree to begin with; without it the oldest is the first"""
        self._conn = conn
        self._query = query
        self._slots = model.slots_of(query)
        self._sharing_id = sharing_id
        # All providers that share, of those that were read.
        self.sharing: set[int] = set()
        self._lenders: dict[int, list[model.Provider]] = {}  # by aggregate
        # All lenders of these aggregates together; many trees are in the same ones.
        self._meeting: dict[frozenset[int], tuple[model.Provider, ...]] = {}
        self._kin: dict[int, list[model.Provider]] = {}  # trees of lenders, by root
        self._seen: set[int] = set()
        self._lending: root_tests.Lending | None = None
        self._with_aggregates = sharing_id is not None or bool(query.aggregates)
        self._named = self._reach()
        self.strict = False
        self._ahead: _Ahead | None = None
        self._page = self._lenient_page()
        self._start(rng)

    def _start(self, rng: random.Random | None) -> None:
        # The parts of the row of all roots that are still to be read, as ids (after, upto).
        self._parts: list[tuple[int, int]] = [(0, statements.MAX_ID)]
        # Drawn by position: after a gap in the ids no tree is likelier than another.
        if rng and (count := self._conn.execute(statements.root_count()).scalar_one()):
            at = statements.root_at(rng.randrange(count))
            drawn = self._conn.execute(at).scalar_one()
            self._parts = [(drawn - 1, statements.MAX_ID), (0, drawn - 1)]

    def _reach(self) -> dict[int, frozenset[int]]:
        """Through which aggregates the trees that suffixed groups ask for lend."""
        named = {
            group.in_tree
            for group in self._query.groups
            if group.suffix and group.in_tree not in (None, model.NOWHERE)
        }
        if not named or self._sharing_id is None:
            return {}
        reach: dict[int, frozenset[int]] = defaultdict(frozenset)
        for lender in providers_of(
            self._conn.execute(statements.sharers(self._sharing_id, roots=named))
        ):
            reach[lender.root_id] |= lender.aggregates
        return reach

    def be_strict(self, seen: Sequence[model.Anchor]) -> tuple[model.Anchor, ...]:
        """Let the database skip trees that cannot serve the query; this costs more per tree.

        :param seen: anchors that show what is scarce
        :returns: anchors of candidates that sharing providers make up alone, if there can be
            any: no page that follows looks for those
        """
        self.strict = True
        able = {} if self._sharing_id is None else self._find_lending(self._sharing_id)
        different = {slot.kind: slot for slot in self._slots}.values()
        self._page = self._strict_page(_by_scarcity(different, _sample(seen, len(different))))
        return self._representatives(able) if able and all(able.values()) else ()

    def _find_lending(self, sharing_id: int) -> dict[model.Slot, list[model.Provider]]:
        """Who could lend for each slot, of all sharing providers of the cloud."""
        lenders = providers_of(self._conn.execute(statements.sharers(sharing_id)))
        of_kind = {
            kind: [p for p in lenders if eligibility.may_lend(p, slot)]
            for kind, slot in {slot.kind: slot for slot in self._slots}.items()
        }
        able = {slot: of_kind[slot.kind] for slot in self._slots}
        self._lending = root_tests.Lending(
            slots={slot: _aggregates_of(found) for slot, found in able.items()},
            traits={
                any_set: _aggregates_of(
                    lender
                    for slot, found in able.items()
                    for lender in found
                    if not slot.granular and any_set & lender.traits
                )
                for any_set in self._query.collective_traits
            },
        )
        self._keep(lenders)
        return able

    def _representatives(
        self, able: Mapping[model.Slot, Sequence[model.Provider]]
    ) -> tuple[model.Anchor, ...]:
        """Trees among which every set of sharing providers that meet is met."""
        assert self._lending is not None
        aggregates = frozenset().union(*self._lending.slots.values())
        if not aggregates:
            return ()
        tests = self._tests_of_root(root_tests.ROOT)
        everybody = {lender.id for found in able.values() for lender in found}
        if len(able) == 1 or len(everybody) == 1:
            rows = self._conn.execute(statements.first_members(aggregates, tests))
            roots = {root for (root,) in rows if root is not None}
        else:
            meeting: dict[int, set[int]] = defaultdict(set)
            for root, aggregate in self._conn.execute(statements.members(aggregates, tests)):
                meeting[root].add(aggregate)
            roots = set({frozenset(found): root for root, found in meeting.items()}.values())
        roots -= self._seen
        if not roots:
            return ()
        return self._anchors(providers_of(self._conn.execute(statements.trees(roots))))

    def next_page(self, size: int) -> Snapshot:
        """The next `size` anchors, or as many as are left."""
        after, upto = self._parts[0]
        rows = self._conn.execute(self._page, {'after': after, 'upto': upto, 'size': size})
        providers = providers_of(rows)
        roots = {provider.root_id for provider in providers}
        if len(roots) < size:
            self._parts.pop(0)
        else:
            self._parts[0] = (max(roots), upto)
        return Snapshot(self._anchors(providers), more=bool(self._parts))

    def _lenient_page(self) -> sa.Select[Any]:
        root = root_tests.ROOT
        tests = self._tests_of_root(root)
        if self._sharing_id is None:
            tests += root_tests.of_traits(self._query, None, root)
            tests += root_tests.of_conditions(self._slots, root)
        return statements.page(tests, self._with_aggregates)

    def _strict_page(self, slots: Sequence[model.Slot]) -> sa.Select[Any]:
        """:param slots: one of each kind, those with the fewest servers first"""
        lending = self._lending
        own = [slot for slot in slots if not (lending and lending.slots.get(slot))]
        if own and not self._query.collective_traits:
            root = root_tests.ROOT_OF_MEMBER
            others = [slot for slot in slots if slot != own[0]]
            return statements.page_of_servers(
                own[0],
                self._tests_of_root(root),
                root_tests.of_slots(others, lending, root),
                self._with_aggregates,
            )
        root = root_tests.ROOT
        # Traits cost less than sums of what is used, so they are asked for first.
        asked = root_tests.of_traits(self._query, lending, root)
        if not own:
            asked.append(root_tests.of_borrower(slots, root))
        asked += root_tests.of_slots(slots, lending, root)
        tests = [*self._tests_of_root(root), root_tests.in_order(asked)]
        return statements.page(tests, self._with_aggregates)

    def _tests_of_root(self, root: root_tests.Root) -> list[root_tests.Clause]:
        return [
            *root_tests.of_root(self._query, root),
            *root_tests.of_place(self._query, self._named, root),
        ]

    def _anchors(self, providers: Sequence[model.Provider]) -> tuple[model.Anchor, ...]:
        trees: dict[int, list[model.Provider]] = defaultdict(list)
        for provider in providers:
            trees[provider.root_id].append(provider)
        if self._sharing_id is not None:
            self.sharing.update(p.id for p in providers if self._sharing_id in p.traits)
            self._find_lenders(providers)
        anchors = []
        for root_id in sorted(trees.keys() - self._seen):
            tree = trees[root_id]
            root = tree[0] if len(tree) == 1 else _root_of(tree)
            anchors.append(model.Anchor(root, tuple(tree), self._lenders_of(root_id, tree)))
        self._seen.update(trees)
        return tuple(self._with_kin(anchors) if self._query.same_subtrees else anchors)

    def _with_kin(self, anchors: Sequence[model.Anchor]) -> list[model.Anchor]:
        """Add what stands between the lenders of one tree."""
        nested = {
            lender.root_id
            for anchor in anchors
            for lender in anchor.lenders
            if lender.parent_id is not None
        }
        for provider in self.whole_trees(nested - self._kin.keys()):
            self._kin.setdefault(provider.root_id, []).append(provider)
        # Many anchors have the same sharing providers, and share the tuple.
        made: dict[tuple[int, ...], tuple[model.Provider, ...]] = {(): ()}
        found = []
        for anchor in anchors:
            key = tuple(sorted({lender.root_id for lender in anchor.lenders}))
            if key not in made:
                made[key] = tuple(p for root_id in key for p in self._kin.get(root_id, ()))
            found.append(anchor._replace(kin=made[key]))
        return found

    def _find_lenders(self, providers: Iterable[model.Provider]) -> None:
        """Read the sharing providers in the aggregates that were not met before."""
        unknown = _aggregates_of(providers) - self._lenders.keys()
        if not unknown or self.strict:
            return
        assert self._sharing_id is not None
        rows = self._conn.execute(statements.sharers(self._sharing_id, unknown))
        self._keep(providers_of(rows), unknown)

    def _keep(self, lenders: Iterable[model.Provider], asked: Iterable[int] | None = None) -> None:
        """Remember sharing providers by aggregate; all of them, or those in `asked`."""
        fresh: dict[int, list[model.Provider]] = {aggregate: [] for aggregate in asked or ()}
        for lender in lenders:
            self.sharing.add(lender.id)
            for aggregate in lender.aggregates:
                if asked is None:
                    fresh.setdefault(aggregate, []).append(lender)
                elif aggregate in fresh:
                    fresh[aggregate].append(lender)
        self._lenders.update(fresh)
        self._meeting.clear()

    def _lenders_of(
        self, root_id: int, tree: Iterable[model.Provider]
    ) -> tuple[model.Provider, ...]:
        if not self._lenders:
            return ()
        aggregates = _aggregates_of(tree)
        lenders = self._meeting.get(aggregates)
        if lenders is None:
            found = {
                lender.id: lender
                for aggregate in aggregates
                for lender in self._lenders.get(aggregate, ())
            }
            lenders = self._meeting[aggregates] = tuple(found[id_] for id_ in sorted(found))
        return tuple(lender for lender in lenders if lender.root_id != root_id)

    def whole_trees(
        self, root_ids: Collection[int], known: Collection[model.Provider] = ()
    ) -> list[model.Provider]:
        """All providers of these trees.

        :param known: some of them, which are not read again: what many trees borrow from has
            more allocations than all of the trees have providers
        """
        if not root_ids:
            return []
        if self._ahead:
            return [p for root_id in root_ids for p in self._ahead.trees[root_id]]
        rows = self._conn.execute(statements.trees(root_ids, but=[p.id for p in known]))
        return [*known, *providers_of(rows)]

    def names(
        self, class_ids: Collection[int], trait_ids: Collection[int]
    ) -> tuple[dict[int, str], dict[int, str]]:
        """The names of resource classes and of traits."""
        if self._ahead:
            return self._ahead.class_names, self._ahead.trait_names
        return names(self._conn, class_ids, trait_ids)

    def read_ahead(self, anchors: Iterable[model.Anchor]) -> None:
        """Read all that an answer about these anchors needs; no statement follows this."""
        anchors = list(anchors)
        trees = {anchor.root.id: list(anchor.tree) for anchor in anchors}
        known = {p.id: p for anchor in anchors for p in anchor.lenders if p.root_id not in trees}
        roots = {provider.root_id for provider in known.values()}
        for provider in self.whole_trees(roots, list(known.values())):
            trees.setdefault(provider.root_id, []).append(provider)
        shown = [provider for tree in trees.values() for provider in tree]
        class_ids = {class_id for provider in shown for class_id in provider.stock}
        trait_ids = frozenset().union(*{provider.traits for provider in shown})
        self._ahead = _Ahead(trees, *self.names(class_ids, trait_ids))


def _by_scarcity(slots: Iterable[model.Slot], anchors: Sequence[model.Anchor]) -> list[model.Slot]:
    """The slots that find servers around the fewest of these anchors first."""

    def key(slot: model.Slot) -> tuple[int, int]:
        served = sum(bool(eligibility.servers(slot, anchor)) for anchor in anchors)
        # Large numbers run out first, as a rule: bytes before gigabytes before processors.
        return served, -max((amount for _, amount in slot.amounts), default=0)

    return sorted(slots, key=key)


def _sample(anchors: Sequence[model.Anchor], slots: int) -> Sequence[model.Anchor]:
    """The first of these anchors, as many as can be checked for so many slots."""
    checks = 0
    for number, anchor in enumerate(anchors[:_SAMPLE]):
        checks += slots * (len(anchor.tree) + len(anchor.lenders))
        if checks > _SAMPLE_CHECKS:
            return anchors[:number]
    return anchors[:_SAMPLE]


def _root_of(tree: Iterable[model.Provider]) -> model.Provider:
    return next(provider for provider in tree if provider.id == provider.root_id)


def _aggregates_of(providers: Iterable[model.Provider]) -> frozenset[int]:
    different = {provider.aggregates for provider in providers}
    return different.pop() if len(different) == 1 else frozenset().union(*different)
