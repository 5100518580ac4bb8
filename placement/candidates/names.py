"""The ids of the names in a query, and the names of the ids in a response."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
import functools
from typing import Any

import orjson
import os_traits
import sqlalchemy as sa

from placement.candidates import model, request
from placement.candidates.statements import is_rare
from placement.db import names as db_names
from placement.db import sql
from placement.db.sqlalchemy import models

# The kinds of names: the values of the first column in the rows of a look-up.
CLASS, TRAIT, AGGREGATE, TREE, SHARING = 'class', 'trait', 'aggregate', 'tree', 'sharing'

_PROVIDERS = models.resource_providers
_LINKS = models.resource_provider_traits

# Kind -> the column with the name or UUID, and the column with the id that replaces it.
NAMED: dict[str, tuple[sa.Column[Any], sa.Column[Any]]] = {
    CLASS: (models.resource_classes.c.name, models.resource_classes.c.id),
    TRAIT: (models.traits.c.name, models.traits.c.id),
    AGGREGATE: (models.placement_aggregates.c.uuid, models.placement_aggregates.c.id),
    TREE: (_PROVIDERS.c.uuid, _PROVIDERS.c.root_provider_id),
}


def of_ids(
    conn: sa.Connection, class_ids: Iterable[int], trait_ids: Iterable[int]
) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Return the names of resource classes and of traits, each as a mapping from id to name."""
    parameters = {
        kind: sorted(ids) for kind, ids in ((CLASS, class_ids), (TRAIT, trait_ids)) if ids
    }
    found: dict[str, dict[int, str]] = {CLASS: {}, TRAIT: {}}
    rows: Iterable[Any] = (
        conn.execute(_names_of_ids(tuple(parameters)), parameters) if parameters else ()
    )
    for kind, text in rows:
        found[kind] = {id_: name for name, id_ in orjson.loads(text or '[]')}
    return found[CLASS], found[TRAIT]


def look_up(conn: sa.Connection, query: model.Query[str]) -> request.Ids:
    """Return the ids of all names of a query, and of the sharing trait."""
    requested = _requested(query)
    rows: Iterable[Any] = conn.execute(_ids_of_names(tuple(requested)), requested)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    rare_ids: dict[str, list[int]] = defaultdict(list)
    for kind, text in rows:
        for name, id_, *rare in orjson.loads(text or '[]'):
            if id_ is not None:  # the root id is NULL if an old release created the provider
                found[kind][name] = id_
            if any(rare):
                rare_ids[kind].append(id_)
    # The names of resource classes and traits must match exactly. UUIDs are compared by the
    # database: with some collations, a requested UUID equals a stored UUID in another spelling.
    by_uuid = {}
    for kind in (AGGREGATE, TREE):
        if kind in requested:
            column, id_ = NAMED[kind]
            by_uuid[kind] = db_names.ids(conn, column, requested[kind], found[kind], id_)
    return request.Ids(
        classes=found[CLASS],
        traits=found[TRAIT],
        aggregates=by_uuid.get(AGGREGATE, {}),
        roots=by_uuid.get(TREE, {}),
        rare_traits=frozenset(rare_ids[TRAIT]),
        rare_aggregates=frozenset(rare_ids[AGGREGATE]),
        sharing_id=next(iter(found[SHARING].values()), None),
    )


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
    """Return a statement that looks up names of these kinds.

    It returns one row (kind, JSON text) for each kind; the text is a list of [name, id, is rare],
    which `statements` explains. If any provider has the trait MISC_SHARES_VIA_AGGREGATE, the row of
    the kind SHARING contains this trait.
    """
    traits = models.traits.c
    sharing = _row_of_kind(SHARING, traits.name, traits.id).where(
        traits.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
        sa.exists().where(_LINKS.c.trait_id == traits.id),
    )
    return sa.union_all(*(_rows_of_kind(kind, of_names=True) for kind in kinds), sharing)


@functools.cache
def _names_of_ids(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    """Return a statement that returns one row (kind, JSON text) for each kind of ids.

    The text is a list of [name, id].
    """
    return sa.union_all(*(_rows_of_kind(kind, of_names=False) for kind in kinds))


def _rows_of_kind(kind: str, of_names: bool) -> sa.Select[Any]:
    """Return a SELECT of the row of a kind, for the requested names or ids."""
    name, id_ = NAMED[kind]
    requested: sa.BindParameter[Any]
    if of_names:
        requested = sa.bindparam(kind, expanding=True)
        return _row_of_kind(kind, name, id_, is_rare(id_)).where(name.in_(requested))
    requested = sa.bindparam(kind, expanding=True, literal_execute=True)
    return _row_of_kind(kind, name, id_).where(id_.in_(requested))


def _row_of_kind(kind: str, name: sa.Column[Any], *columns: Any) -> sa.Select[Any]:
    # PERF: one row for all names takes half the time of one row for each name (2026-11). A name has
    # at most 255 characters.
    values = sql.ShortJson(sql.JsonArray(sql.StoredText(name), *columns))
    row: list[Any] = [sa.literal_column(f"'{kind}'"), sql.JsonList(values)]
    return sa.select(*row)
