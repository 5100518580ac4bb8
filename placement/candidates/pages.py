"""Reads provider trees page by page; decides the size of each page and how it is filtered.

An *anchor* is a provider tree together with the sharing providers available to it. `pages` yields
the anchors of one page after another:

* The first pages are *lenient*: the database evaluates only cheap conditions, because the other
  conditions cost more than they save if most trees can serve the query.
* If fewer than half of the trees of a page have a candidate, all further pages are *strict*: the
  database skips trees that cannot serve the query (see `statements`). If sharing providers can
  serve the whole query, the pages stay lenient, because every tree that they are available to has a
  candidate.
* The size of the next page is computed from the number of candidates still needed and from the
  search steps spent on the last page.

The roots of a page are selected in the order of their ids, or at random.

One statement reads a page, with one row for each provider of its trees. In a row, the traits,
aggregates and inventories of the provider are JSON arrays that the database builds. This is faster
than one row for each trait, aggregate and inventory.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
import functools
import operator
import random
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from placement import capacity
from placement.candidates import eligibility, model, statements
from placement.candidates.selection import shuffled
from placement.candidates.sharing import SharingProviders
from placement.candidates.statements import IS_ROOT, ROOTS
from placement.db import expressions, sql
from placement.db.sqlalchemy import models

# Number of trees on the first page. The first page shows whether most trees can serve the query.
FIRST_PAGE = 16
LARGEST_PAGE = 2048
# If all candidates are requested, each page is at most this many times as large as the last page.
GROWTH = 8
# A page has at most as many trees as can probably be searched with this number of steps.
PAGE_STEPS = 100_000
# The maximum number of ids in a statement. PERF: MariaDB converts a list of 1,000 or more ids to a
# join, and reads 1,000 trees four times as slowly (2026-11).
_MAX_IDS = 900

_Statement = sa.Select[Any]


# Pages of a search ------------------------------------------------------------


class Counts(NamedTuple):
    """What a search used and found so far, or in one page."""

    # The number of search steps.
    steps: int
    # The number of candidates found.
    candidates: int
    # The number of anchors with at least one candidate.
    fitting_anchors: int


def pages(
    reader: 'Reader',
    target: int | None,
    counts: Callable[[], Counts],
    rng: random.Random | None = None,
) -> Iterator[Sequence[model.Anchor]]:
    """Yield the anchors of each page in the order of the search.

    :param target: the number of candidates to find; None for all
    :param counts: returns what the search used and found so far
    :param rng: selects the trees of each page, and shuffles the anchors of each page. Without
        `rng`, trees are read in the order of their root ids
    """
    # If all candidates are requested, the order of the pages has no effect on the selection.
    order = _InOrder(reader) if rng is None or target is None else _AtRandom(reader, rng)
    size = FIRST_PAGE if target is None else min(target + 3, FIRST_PAGE)
    is_decided = False
    while order.has_more:
        before = counts()
        anchors = order.read(size)
        yield shuffled(anchors, rng)
        after = counts()
        page = Counts(*map(operator.sub, after, before))
        similar = len(anchors)
        if not is_decided and page.fitting_anchors * 2 < len(anchors) and order.has_more:
            is_decided = True
            roots = reader.strict_roots(anchors)
            if roots is not None:
                order.use(roots)
                similar = page.fitting_anchors
        missing = None if target is None else target - after.candidates
        # The number of trees that can be searched in PAGE_STEPS, if each takes as many steps.
        largest = min(LARGEST_PAGE, PAGE_STEPS * len(anchors) // max(page.steps, 1))
        size = max(FIRST_PAGE, min(_wanted(size, similar, page, missing), largest))


def _wanted(size: int, similar: int, page: Counts, missing: int | None) -> int:
    """Return the number of trees that probably have the missing candidates.

    :param size: the number of trees that was requested for the last page
    :param similar: the number of trees on the last page that are like those of the next page
    :param page: the counts of the last page
    :param missing: the number of candidates still needed; None if all candidates are requested
    """
    if missing is None:
        return size * GROWTH
    if not page.candidates:
        return missing + 1 if similar == 0 else size * GROWTH
    # PERF: the cost of a page grows with its trees. 2 % more than necessary usually suffice.
    return int(missing * min(similar / page.candidates, GROWTH) * 1.02 + 1)


class _InOrder:
    """Reads the roots in the order of their ids. Each page except the last has `size` trees."""

    def __init__(self, reader: 'Reader') -> None:
        self.has_more = True
        self._reader = reader
        self._after = 0
        self.use(reader.lenient_roots())

    def use(self, roots: _Statement) -> None:
        """Read further pages with this statement."""
        self._statement = _page(roots, self._reader.with_aggregates)

    def read(self, size: int) -> Sequence[model.Anchor]:
        """Return the anchors of the next page."""
        anchors = self._reader.read(self._statement, {'after': self._after, 'size': size})
        self.has_more = len(anchors) == size
        self._after = anchors[-1].root.id if anchors else 0
        return anchors


class _AtRandom:
    """Reads the roots in random order: each order has the same probability.

    One statement returns the ids of all roots that satisfy the conditions of lenient pages. These
    ids are shuffled, and the pages read them in this order.
    """

    def __init__(self, reader: 'Reader', rng: random.Random) -> None:
        self._reader = reader
        self._left = list(shuffled(reader.root_ids(reader.lenient_roots()), rng))

    def use(self, roots: _Statement) -> None:
        """Read further pages with this statement."""
        selected = {*self._reader.root_ids(roots)}
        self._left = [root for root in self._left if root in selected]

    def read(self, size: int) -> Sequence[model.Anchor]:
        """Return the anchors of the next page."""
        size = min(size, _MAX_IDS)
        ids = self._left[-size:]
        del self._left[-size:]
        return self._reader.read_trees(ids)

    @property
    def has_more(self) -> bool:
        """Whether roots are left."""
        return bool(self._left)


# Anchors ----------------------------------------------------------------------


class Reader:
    """Executes the statements of one request and builds anchors from the returned rows.

    This is the only class of the package that stores a database connection.
    """

    def __init__(
        self, conn: sa.Connection, query: model.Query[int], sharing_id: int | None
    ) -> None:
        """Read nothing yet.

        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        """
        # The sharing providers read so far.
        self.sharing = SharingProviders(sharing_id)
        # Whether the search needs the aggregates of providers.
        self.with_aggregates = sharing_id is not None or bool(query.aggregates)
        self._conn = conn
        self._query = query
        self._slots = model.slots_of(query)
        self._sharing_id = sharing_id

    def read(self, statement: _Statement, parameters: Mapping[str, Any]) -> list[model.Anchor]:
        """Return the anchors of the trees that a statement returns, in the order of their ids.

        This method also reads the sharing providers that these anchors need.
        """
        providers = providers_of(self._conn.execute(statement, parameters))
        self.sharing.add(providers)
        if aggregates := self.sharing.unread(providers):
            self.sharing.add(self._sharing_trees(aggregates))
        trees: dict[int, list[model.Provider]] = defaultdict(list)
        for provider in providers:
            trees[provider.root_id].append(provider)
        return [self._anchor(root_id, trees[root_id]) for root_id in sorted(trees)]

    def _anchor(self, root_id: int, tree: list[model.Provider]) -> model.Anchor:
        root = tree[0] if len(tree) == 1 else next(p for p in tree if p.id == root_id)
        sharing = self.sharing.of_tree(root_id, tree)
        nested = self.sharing.nested_trees(sharing) if self._query.same_subtrees else ()
        return model.Anchor(root, tuple(tree), sharing, nested)

    def read_trees(self, root_ids: Collection[int]) -> list[model.Anchor]:
        """Return the anchors with these root ids."""
        return self.read(_listed_trees(self.with_aggregates), {'root_ids': sorted(root_ids)})

    def root_ids(self, roots: _Statement) -> Sequence[int]:
        """Return all root ids that a statement of `statements` selects."""
        return self._conn.scalars(roots, {'after': 0, 'size': capacity.MAX_INT}).all()

    def lenient_roots(self) -> _Statement:
        """Return the statement for the root ids of lenient pages."""
        return statements.lenient_roots(self._query, self._slots, self._sharing_id)

    def strict_roots(self, anchors: Sequence[model.Anchor]) -> _Statement | None:
        """Return the statement for the root ids of strict pages.

        It first checks the slots that the fewest anchors can serve.

        :param anchors: anchors to examine in order to find these slots
        :returns: None if sharing providers can serve the whole query
        """
        self.read_all_sharing_providers()
        able = self.sharing.able(self._slots)
        if all(able.values()):
            return None
        different = {slot.kind: slot for slot in self._slots}.values()
        first = eligibility.scarce_first(different, anchors[:FIRST_PAGE])
        return statements.strict_roots(self._query, self._slots, self._sharing_id, able, first)

    def read_all_sharing_providers(self) -> None:
        """Read all sharing providers, so that no page reads any of them again."""
        if self._sharing_id is not None:
            self.sharing.add_all(self._sharing_trees())

    def _sharing_trees(self, aggregates: Collection[int] = ()) -> list[model.Provider]:
        """Return the providers of the trees of sharing providers that were not read yet.

        :param aggregates: only sharing providers in these aggregates; empty for all
        """
        parameters = {
            'sharing_id': self._sharing_id,
            'excluded': sorted(self.sharing.trees),
            'aggregates': sorted(aggregates),
        }
        return providers_of(self._conn.execute(_sharing_trees(not aggregates), parameters))


# Trees ------------------------------------------------------------------------

# The table aliases of `columns`. PERF: an alias takes longer to create than the rest of a
# statement, so each is created only once.
_PROVIDER = models.resource_providers.alias('provider')
_SHARING = models.resource_providers.alias('sharing')
_INVENTORIES = models.inventories.alias('inventory')
_TRAIT_LINK = models.resource_provider_traits.alias('trait_link')
_AGGREGATE_LINK = models.resource_provider_aggregates.alias('aggregate_link')


@functools.cache
def columns(with_aggregates: bool) -> sa.Select[Any]:
    """Return a SELECT of the columns that `providers_of` reads.

    The columns for traits, aggregates and inventories contain JSON arrays as text.
    """
    inventory = sql.JsonNumberArray(
        _INVENTORIES.c.resource_class_id,
        _INVENTORIES.c.total,
        _INVENTORIES.c.reserved,
        _INVENTORIES.c.min_unit,
        _INVENTORIES.c.max_unit,
        _INVENTORIES.c.step_size,
        sql.JsonNumber(_INVENTORIES.c.allocation_ratio),
        expressions.used(_INVENTORIES),
    )
    return sa.select(
        _PROVIDER.c.id,
        _PROVIDER.c.uuid,
        _PROVIDER.c.root_provider_id,
        _PROVIDER.c.parent_provider_id,
        _list_of_provider(_TRAIT_LINK, _TRAIT_LINK.c.trait_id),
        _list_of_provider(_AGGREGATE_LINK, _AGGREGATE_LINK.c.aggregate_id)
        if with_aggregates
        else sa.null(),
        _list_of_provider(_INVENTORIES, inventory),
    )


def _list_of_provider(table: sa.FromClause, item: sa.ColumnElement[Any]) -> sa.ScalarSelect[str]:
    return (
        sa.select(sql.JsonList(item))
        .select_from(table)
        .where(table.c.resource_provider_id == _PROVIDER.c.id)
        .correlate(_PROVIDER)
        .scalar_subquery()
    )


def _page(roots: _Statement, with_aggregates: bool) -> _Statement:
    """Return a statement that returns the trees of the roots that a statement selects."""
    is_cached = roots is statements.all_roots()
    return _all_trees(with_aggregates) if is_cached else _trees(roots, with_aggregates)


@functools.cache
def _all_trees(with_aggregates: bool) -> _Statement:
    return _trees(statements.all_roots(), with_aggregates)


@functools.cache
def _listed_trees(with_aggregates: bool) -> _Statement:
    """Return a statement that returns the trees with the roots `root_ids`."""
    roots = sa.select(ROOTS.c.id).where(IS_ROOT, ROOTS.c.id.in_(_ids('root_ids')))
    return _trees(roots, with_aggregates)


@functools.cache
def _sharing_trees(of_all: bool) -> _Statement:
    """Return a statement that returns the trees of sharing providers.

    Its parameters are `sharing_id`, which is the id of the trait MISC_SHARES_VIA_AGGREGATE,
    `aggregates`, and `excluded`, a list of the root ids of trees that are not returned.

    :param of_all: whether to return the trees of all sharing providers. Otherwise, only those of
        the sharing providers in at least one of the aggregates are returned
    """
    traits, link = models.resource_provider_traits, _AGGREGATE_LINK
    roots = (
        sa.select(ROOTS.c.id)
        .join_from(traits, _SHARING, _SHARING.c.id == traits.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == _SHARING.c.root_provider_id)
        .where(traits.c.trait_id == sa.bindparam('sharing_id', type_=sa.Integer), IS_ROOT)
        .where(ROOTS.c.id.not_in(_ids('excluded')))
        .distinct()
    )
    if not of_all:
        shared = link.c.aggregate_id.in_(_ids('aggregates'))
        roots = roots.where(sa.exists().where(link.c.resource_provider_id == _SHARING.c.id, shared))
    return _trees(roots, with_aggregates=True)


def _trees(roots: _Statement, with_aggregates: bool) -> _Statement:
    few = roots.subquery('few')
    return columns(with_aggregates).join_from(
        few, _PROVIDER, _PROVIDER.c.root_provider_id == few.c.id
    )


def _ids(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.Integer, expanding=True, literal_execute=True)


def providers_of(rows: Iterable[Sequence[Any]]) -> list[model.Provider]:
    """Return the providers from rows of `columns`, sorted by id.

    PostgreSQL moves a row when it is updated, and without an order, it returns rows as they are
    stored. Each claim would then change the order of the candidates.
    """

    # Equal texts, which are common, share one set.
    @functools.cache
    def id_set(text: str | None) -> frozenset[int]:
        return frozenset(orjson.loads(text or '[]'))

    loads = orjson.loads
    # PERF: `ProviderInventory._make` takes twice as long (2026-11).
    make = functools.partial(tuple.__new__, model.ProviderInventory)
    providers = [
        model.Provider(
            id_,
            uuid,
            root_id,
            parent_id,
            id_set(traits),
            id_set(aggregates),
            {values[0]: make(values) for values in loads(inventories)} if inventories else {},
        )
        for id_, uuid, root_id, parent_id, traits, aggregates, inventories in rows
    ]
    # PERF: 0.04 ms for 1,000 rows that are in order; such a search takes 20 ms or more (2026-11).
    providers.sort(key=operator.itemgetter(0))
    return providers
