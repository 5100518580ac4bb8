"""Reading names and providers: rows to the data of `model`.

Each function executes one statement of `statements`, or none if there is nothing to read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from placement.candidates import model, request, statements
from placement.db import names as db_names


class _IdSets:
    """Sets of ids from JSON text; equal text, which is common, returns the same set."""

    def __init__(self) -> None:
        self._sets: dict[str | None, frozenset[int]] = {None: frozenset()}

    def __call__(self, text: str | None) -> frozenset[int]:
        ids = self._sets.get(text)
        if ids is None:
            ids = self._sets[text] = frozenset(orjson.loads(text or '[]'))
        return ids


def providers_of(rows: Iterable[Sequence[Any]]) -> list[model.Provider]:
    """Return the providers of rows of `statements.provider_facts`."""
    id_sets = _IdSets()
    make, loads = model.ProviderInventory._make, orjson.loads
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
    """Return all providers of the trees of these roots.

    :param read: providers of these trees that were read already. They are not read again: a sharing
        provider of many trees has more allocations than all these trees have providers
    """
    if not root_ids:
        return []
    rows = conn.execute(statements.trees(root_ids, excluded=[provider.id for provider in read]))
    return [*read, *providers_of(rows)]


def bind(conn: sa.Connection, query: model.Query[str]) -> tuple[model.Query[int], int | None]:
    """Return a query with ids, and the id of the sharing trait if any provider has it.

    :raises exception.UnknownTraits: and
    :raises exception.UnknownResourceClasses: for names that do not exist
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    statement, requested = statements.ids_of_names(query)
    for kind, name, id_ in conn.execute(statement, requested):
        if id_ is not None:  # a provider without a root
            found[kind][name] = id_
    # Names of classes and traits must be spelled as they are stored. For UUIDs, the database
    # decides which texts are equal.
    kinds = [kind for kind in (statements.AGGREGATE, statements.TREE) if kind in requested]
    lookups = [
        db_names.Lookup(*statements.NAMED[kind], requested[kind], found[kind]) for kind in kinds
    ]
    by_uuid = dict(zip(kinds, db_names.resolve(conn, lookups), strict=True))
    ids = request.Ids(
        classes=found[statements.CLASS],
        traits=found[statements.TRAIT],
        aggregates=by_uuid.get(statements.AGGREGATE, {}),
        roots=by_uuid.get(statements.TREE, {}),
    )
    return request.bind(query, ids), next(iter(found[statements.SHARING].values()), None)


def names(
    conn: sa.Connection, class_ids: Collection[int], trait_ids: Collection[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of resource classes and of traits, by id."""
    found: dict[str, dict[int, str]] = {statements.CLASS: {}, statements.TRAIT: {}}
    if class_ids or trait_ids:
        for kind, name, id_ in conn.execute(*statements.names_of_ids(class_ids, trait_ids)):
            found[kind][id_] = name
    return found[statements.CLASS], found[statements.TRAIT]
