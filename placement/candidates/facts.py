"""Reads names and providers from the database, and returns them as the types of `model`.

Each function executes at most one statement of `statements` or `name_statements`. `with_ids`
executes a second statement if a requested UUID is not stored exactly as the client wrote it (see
`placement.db.names`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
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
    conn: sa.Connection, root_ids: Collection[int], read: Collection[model.Provider] = ()
) -> list[model.Provider]:
    """Return all providers of the trees with these roots.

    :param read: the providers of these trees that were read before. They are returned but not read
        again. PERF: a sharing provider often has many allocations, and reading it sums all of them
    """
    if not root_ids:
        return []
    rows = conn.execute(statements.trees(root_ids, excluded=[provider.id for provider in read]))
    return [*read, *providers_of(rows)]


def with_ids(
    conn: sa.Connection, query: model.Query[str], names: Names | None = None
) -> tuple[model.Query[int], int | None]:
    """Return the query with ids in place of names, and the id of the sharing trait.

    :param names: receives the names that the response will probably contain
    :returns: the query, and the id of MISC_SHARES_VIA_AGGREGATE, or None if no provider has the
        trait
    :raises exception.UnknownTraits: if a trait does not exist
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    """
    ids, sharing_id = ids_of(conn, query, names)
    return request.with_ids(query, ids), sharing_id


def ids_of(
    conn: sa.Connection, query: model.Query[str], names: Names | None = None
) -> tuple[request.Ids, int | None]:
    """Return the ids of all names of a query, and the id of the sharing trait.

    :param names: receives the names that the response will probably contain
    :returns: the ids, and the id of MISC_SHARES_VIA_AGGREGATE, or None if no provider has the trait
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    rare: dict[str, set[int]] = defaultdict(set)
    expected = known_names.expected() if names else {}
    rows: Iterable[Any] = conn.execute(*name_statements.ids_of_names(query, expected))
    for kind, name, id_, is_rare in rows:
        if names and kind.startswith(name_statements.EXPECTED):
            names.add(kind.removeprefix(name_statements.EXPECTED), id_, name)
        elif id_ is not None:  # the root id is NULL if an old release created the provider
            found[kind][name] = id_
        if is_rare:
            rare[kind].add(id_)
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
    return ids, next(iter(found[name_statements.SHARING].values()), None)
