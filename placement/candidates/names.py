"""The ids of the names in a query, and the names of the ids in a response.

A search looks up the ids of the names in its query, and needs the names of the ids in its response
at its end. Recent responses of this process show which ids to expect. The search reads the names of
the expected ids together with the ids of the query, in the same snapshot, and usually needs no
other statement at the end.

This module keeps ids between requests, but no names, because names can change.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
import functools
from typing import Any

import orjson
import os_traits
import sqlalchemy as sa

from placement.candidates import model, rare, request
from placement.db import names as db_names
from placement.db import sql
from placement.db.sqlalchemy import models

# The kinds of names: the values of the first column in the rows of a look-up.
CLASS, TRAIT, AGGREGATE, TREE, SHARING = 'class', 'trait', 'aggregate', 'tree', 'sharing'
# The prefix of the kind in rows that contain the names of expected ids.
EXPECTED = 'expected_'

_PROVIDERS = models.resource_providers
_LINKS = models.resource_provider_traits

# Kind -> the column with the name or UUID, and the column with the id that replaces it.
NAMED: dict[str, tuple[sa.Column[Any], sa.Column[Any]]] = {
    CLASS: (models.resource_classes.c.name, models.resource_classes.c.id),
    TRAIT: (models.traits.c.name, models.traits.c.id),
    AGGREGATE: (models.placement_aggregates.c.uuid, models.placement_aggregates.c.id),
    TREE: (_PROVIDERS.c.uuid, _PROVIDERS.c.root_provider_id),
}

Parameters = dict[str, Any]
Ids = dict[str, frozenset[int]]

# PERF: reading an unexpected name costs a round trip; reading a name that is not needed costs 8
# microseconds (2026-11). Ids that only older responses contained are expected up to this number.
_MOST_FROM_OLDER_RESPONSES = 128
# If a response contains more ids, none are expected.
_MOST = 1_000

# Kind -> the ids to expect. The value is replaced as a whole, because threads share it.
_NOTHING_EXPECTED: Ids = {CLASS: frozenset(), TRAIT: frozenset()}
_expected: Ids = _NOTHING_EXPECTED


def expected() -> Ids:
    """Return the ids whose names the next response will probably contain, by their kind."""
    return _expected


def forget() -> None:
    """Expect no ids until the next response, as in a new process."""
    global _expected
    _expected = _NOTHING_EXPECTED


class Names:
    """The names that one search has read."""

    def __init__(self) -> None:
        # Kind -> id -> name.
        self._names: dict[str, Mapping[int, str]] = {CLASS: {}, TRAIT: {}}

    def add(self, kind: str, names: Mapping[int, str]) -> None:
        """Add names that were read together with the ids of the query.

        :param names: id -> name
        """
        self._names[kind] = names

    def read(
        self, conn: sa.Connection, class_ids: Iterable[int], trait_ids: Iterable[int]
    ) -> tuple[Mapping[int, str], Mapping[int, str]] | None:
        """Return the names of resource classes and of traits, each as a mapping from id to name.

        :param conn: used only if a name has not been read yet
        :returns: mappings that also contain the names of other ids; None if a name has not been
            read yet and the connection is closed
        """
        needed = {CLASS: frozenset(class_ids), TRAIT: frozenset(trait_ids)}
        missing = {kind: ids - self._names[kind].keys() for kind, ids in needed.items()}
        if any(missing.values()):
            if conn.closed:
                return None
            parameters = {kind: sorted(ids) for kind, ids in missing.items() if ids}
            rows: Iterable[Any] = conn.execute(_names_of_ids(tuple(parameters)), parameters)
            for kind, text in rows:
                self._names[kind] = {**self._names[kind], **_by_id(text)}
            _expect(needed)
        return self._names[CLASS], self._names[TRAIT]


def _by_id(text: str | None) -> dict[int, str]:
    """Return the names in the JSON text of a row, keyed by id."""
    return {id_: name for name, id_ in orjson.loads(text or '[]')}


def _expect(needed: Ids) -> None:
    """Expect the ids of a response that contained an unexpected id."""
    global _expected
    union = {kind: ids | _expected[kind] for kind, ids in needed.items()}
    if sum(map(len, union.values())) <= _MOST_FROM_OLDER_RESPONSES:
        _expected = union
    elif sum(map(len, needed.values())) <= _MOST:
        _expected = needed
    else:
        _expected = _NOTHING_EXPECTED


@dataclass(frozen=True, slots=True)
class Found:
    """The ids of all names of a query, and of the sharing trait."""

    ids: request.Ids
    # The id of MISC_SHARES_VIA_AGGREGATE; None if no provider has the trait.
    sharing_id: int | None


def look_up(conn: sa.Connection, query: model.Query[str], names: Names | None = None) -> Found:
    """Return the ids of all names of a query, and of the sharing trait.

    :param names: receives the names that the response will probably contain
    """
    kinds, parameters = to_look_up(query, _expected if names else {})
    return found_in(conn, query, conn.execute(_ids_of_names(kinds), parameters), names)


def found_in(
    conn: sa.Connection,
    query: model.Query[str],
    rows: Iterable[Sequence[Any]],
    names: Names | None = None,
) -> Found:
    """Return the same as `look_up`, from the rows of `selects`.

    :param conn: used only if a requested UUID is not stored exactly as the client wrote it
    :param names: receives the names that the response will probably contain
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    rare_ids: dict[str, list[int]] = defaultdict(list)
    for kind, text in rows:
        if kind.startswith(EXPECTED):
            if names:
                names.add(kind.removeprefix(EXPECTED), _by_id(text))
            continue
        for name, id_, *is_rare in orjson.loads(text or '[]'):
            if id_ is not None:  # the root id is NULL if an old release created the provider
                found[kind][name] = id_
            if any(is_rare):
                rare_ids[kind].append(id_)
    # The names of resource classes and traits must match exactly. UUIDs are compared by the
    # database: with some collations, a requested UUID equals a stored UUID in another spelling.
    requested = _requested(query)
    kinds = [kind for kind in (AGGREGATE, TREE) if kind in requested]
    lookups = [db_names.Lookup(*NAMED[kind], requested[kind], found[kind]) for kind in kinds]
    by_uuid = dict(zip(kinds, db_names.resolve(conn, lookups), strict=True))
    ids = request.Ids(
        classes=found[CLASS],
        traits=found[TRAIT],
        aggregates=by_uuid.get(AGGREGATE, {}),
        roots=by_uuid.get(TREE, {}),
        rare_traits=frozenset(rare_ids[TRAIT]),
        rare_aggregates=frozenset(rare_ids[AGGREGATE]),
    )
    return Found(ids, next(iter(found[SHARING].values()), None))


def to_look_up(
    query: model.Query[str], expected: Mapping[str, Collection[int]]
) -> tuple[tuple[str, ...], Parameters]:
    """Return the kinds of the names and ids to look up, and the names and ids as parameters.

    :param expected: kind -> ids whose names are looked up, too
    """
    ids = {EXPECTED + kind: sorted(of_kind) for kind, of_kind in expected.items() if of_kind}
    parameters = _requested(query) | ids
    return tuple(parameters), parameters


def _requested(query: model.Query[str]) -> dict[str, list[str]]:
    """Return the sorted names of each kind that a query contains."""
    names = {
        CLASS: query.classes,
        TRAIT: query.traits,
        AGGREGATE: query.aggregates,
        TREE: query.in_trees,
    }
    return {kind: sorted(of_kind) for kind, of_kind in names.items() if of_kind}


@functools.cache
def _ids_of_names(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    return sa.union_all(*selects(kinds))


@functools.cache
def selects(kinds: tuple[str, ...]) -> tuple[sa.Select[Any], ...]:
    """Return the parts of the statement that looks up names and ids of these kinds.

    The statement returns one row (kind, JSON text) for each kind; the text is a list of [name, id,
    is rare], which `rare` explains. For a kind with the prefix EXPECTED, it is a list of [name,
    id]. If any provider has the trait MISC_SHARES_VIA_AGGREGATE, the row of the kind SHARING
    contains this trait.

    PERF: building the statement takes longer than executing it. So the statement is cached, and the
    names are parameters.
    """
    traits = models.traits.c
    sharing = _row_of_kind(SHARING, traits.name, traits.id).where(
        traits.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
        sa.exists().where(_LINKS.c.trait_id == traits.id),
    )
    return *map(_named, kinds), sharing


def _named(kind: str) -> sa.Select[Any]:
    """Return a select of the ids of names or, with the prefix EXPECTED, of the names of ids."""
    if kind.startswith(EXPECTED):
        return _names_of_kind(kind, *NAMED[kind.removeprefix(EXPECTED)])
    name, id_ = NAMED[kind]
    requested: sa.BindParameter[Any] = sa.bindparam(kind, expanding=True)
    return _row_of_kind(kind, name, id_, rare.is_rare(id_)).where(name.in_(requested))


@functools.cache
def _names_of_ids(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    """Return a statement that returns one row (kind, JSON text) for each kind of ids.

    The text is a list of [name, id].
    """
    return sa.union_all(*(_names_of_kind(kind, *NAMED[kind]) for kind in kinds))


def _names_of_kind(kind: str, name: sa.Column[Any], id_: sa.Column[Any]) -> sa.Select[Any]:
    requested: sa.BindParameter[Any] = sa.bindparam(kind, expanding=True, literal_execute=True)
    return _row_of_kind(kind, name, id_).where(id_.in_(requested))


def _row_of_kind(kind: str, name: sa.Column[Any], *columns: Any) -> sa.Select[Any]:
    # PERF: one row for all names takes half the time of one row for each name (2026-11). A name has
    # at most 255 characters.
    values = sql.ShortJson(sql.JsonArray(sql.StoredText(name), *columns))
    row: list[Any] = [sa.literal_column(f"'{kind}'"), sql.JsonList(values)]
    return sa.select(*row)
