"""Reads names and providers from the database, and returns them as the types of `model`.

Each function executes at most one statement of `statements` or `name_statements`. `look_up` and
`with_ids` execute a second statement if a requested UUID is not stored exactly as the client wrote
it (see `placement.db.names`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
import functools
from typing import Any

import orjson
import sqlalchemy as sa

from placement.candidates import model, name_statements, request, statements
from placement.candidates import names as known_names
from placement.candidates.names import Names
from placement.db import names as db_names


class _IdSets:
    """Parses JSON arrays of ids. Equal texts, which are common, are parsed only once."""

    def __init__(self) -> None:
        self._sets: dict[str | None, frozenset[int]] = {None: frozenset()}

    def __call__(self, text: str | None) -> frozenset[int]:
        ids = self._sets.get(text)
        if ids is None:
            ids = self._sets[text] = frozenset(orjson.loads(text or '[]'))
        return ids


def providers_of(rows: Iterable[Sequence[Any]]) -> list[model.Provider]:
    """Return the providers from rows of `statements.provider_facts`."""
    id_sets, loads = _IdSets(), orjson.loads
    # PERF: `ProviderInventory._make` takes twice as long (2026-11).
    make = functools.partial(tuple.__new__, model.ProviderInventory)
    return [
        model.Provider(
            id_,
            uuid,
            root_id,
            parent_id,
            id_sets(traits),
            id_sets(aggregates),
            {values[0]: make(values) for values in loads(inventories)} if inventories else {},
        )
        for id_, uuid, root_id, parent_id, traits, aggregates, inventories in rows
    ]


def trees(
    conn: sa.Connection, root_ids: Collection[int], trait_id: int | None = None
) -> list[model.Provider]:
    """Return all providers of the trees with these roots.

    :param trait_id: return only providers with this trait; None for all
    """
    if not root_ids:
        return []
    return providers_of(conn.execute(statements.trees(root_ids, trait_id)))


@dataclass(frozen=True, slots=True)
class Found:
    """The ids of all names of a query, and of the sharing trait."""

    ids: request.Ids
    # The id of MISC_SHARES_VIA_AGGREGATE; None if no provider has the trait.
    sharing_id: int | None


def with_ids(conn: sa.Connection, query: model.Query[str]) -> tuple[model.Query[int], int | None]:
    """Return the query with ids in place of names, and the id of the sharing trait.

    :returns: the query, and the id of MISC_SHARES_VIA_AGGREGATE, or None if no provider has the
        trait
    :raises exception.UnknownTraits: if a trait does not exist
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    """
    found = look_up(conn, query)
    return request.with_ids(query, found.ids), found.sharing_id


def look_up(conn: sa.Connection, query: model.Query[str], names: Names | None = None) -> Found:
    """Return the ids of all names of a query, and of the sharing trait.

    :param names: receives the names that the response will probably contain
    """
    expected = known_names.expected() if names else {}
    rows = conn.execute(*name_statements.ids_of_names(query, expected))
    return found_in(conn, query, rows, names)


def found_in(
    conn: sa.Connection,
    query: model.Query[str],
    rows: Iterable[Sequence[Any]],
    names: Names | None = None,
) -> Found:
    """Return the same as `look_up`, from the rows of `name_statements.ids_of_names`.

    :param conn: used only if a requested UUID is not stored exactly as the client wrote it
    :param names: receives the names that the response will probably contain
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    rare: dict[str, list[int]] = defaultdict(list)
    for kind, text in rows:
        if kind.startswith(name_statements.EXPECTED):
            if names:
                expected = known_names.names_by_id(text or '[]')
                names.add(kind.removeprefix(name_statements.EXPECTED), expected)
            continue
        for name, id_, *is_rare in orjson.loads(text or '[]'):
            if id_ is not None:  # the root id is NULL if an old release created the provider
                found[kind][name] = id_
            if any(is_rare):
                rare[kind].append(id_)
    # The names of resource classes and traits must match exactly. UUIDs are compared by the
    # database: with some collations, a requested UUID equals a stored UUID in another spelling.
    requested = name_statements.requested_names(query)
    kinds = [
        kind for kind in (name_statements.AGGREGATE, name_statements.TREE) if kind in requested
    ]
    lookups = [
        db_names.Lookup(*name_statements.NAMED[kind], requested[kind], found[kind])
        for kind in kinds
    ]
    by_uuid = dict(zip(kinds, db_names.resolve(conn, lookups), strict=True))
    ids = request.Ids(
        classes=found[name_statements.CLASS],
        traits=found[name_statements.TRAIT],
        aggregates=by_uuid.get(name_statements.AGGREGATE, {}),
        roots=by_uuid.get(name_statements.TREE, {}),
        rare_traits=frozenset(rare[name_statements.TRAIT]),
        rare_aggregates=frozenset(rare[name_statements.AGGREGATE]),
    )
    return Found(ids, next(iter(found[name_statements.SHARING].values()), None))
