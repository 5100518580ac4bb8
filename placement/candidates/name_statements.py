"""Builds the statements that return the ids of names and the names of ids."""

from collections.abc import Collection, Mapping
import functools
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.candidates import model, rare
from placement.db import json_sql, portable_sql
from placement.db.sqlalchemy import models

# The values of the first column in the rows of `ids_of_names` and `names_of_ids`.
CLASS, TRAIT, AGGREGATE, TREE, SHARING = 'class', 'trait', 'aggregate', 'tree', 'sharing'
# The prefix of the kind in rows of `ids_of_names` that contain the name of an expected id.
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
Statement = tuple[sa.CompoundSelect[Any], Parameters]


def ids_of_names(query: model.Query[str], expected: Mapping[str, Collection[int]]) -> Statement:
    """Return a statement that returns the ids of all names of a query.

    The statement returns one row (kind, JSON text) for each kind; the text is a list of [name, id,
    is rare], which `rare` explains. If any provider has the trait MISC_SHARES_VIA_AGGREGATE, the
    row of the kind SHARING contains this trait.

    PERF: building the statement takes longer than executing it. So the statement is cached, and the
    names are parameters.

    :param expected: kind -> ids whose names the statement also returns; the kind of their rows has
        the prefix EXPECTED, and their text is a list of [name, id]
    :returns: the statement, and its parameters
    """
    kinds, parameters = kinds_of(query, expected)
    return _ids_of_names(kinds), parameters


def kinds_of(
    query: model.Query[str], expected: Mapping[str, Collection[int]]
) -> tuple[tuple[str, ...], Parameters]:
    """Return the kinds of the names and ids to look up, and the names and ids as parameters."""
    ids = {EXPECTED + kind: sorted(of_kind) for kind, of_kind in expected.items() if of_kind}
    parameters = requested_names(query) | ids
    return tuple(parameters), parameters


def requested_names(query: model.Query[str]) -> dict[str, list[str]]:
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
    """Return the parts of the statement of `ids_of_names`."""
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


def names_of_ids(ids: Mapping[str, Collection[int]]) -> Statement:
    """Return a statement that returns the names of classes and traits.

    The statement returns one row (kind, JSON text) for each kind; the text is a list of [name, id].

    :param ids: kind -> the ids; at least one kind has an id
    :returns: the statement, and its parameters
    """
    parameters = {kind: sorted(of_kind) for kind, of_kind in ids.items() if of_kind}
    return _names_of_ids(tuple(parameters)), parameters


@functools.cache
def _names_of_ids(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    return sa.union_all(*(_names_of_kind(kind, *NAMED[kind]) for kind in kinds))


def _names_of_kind(kind: str, name: sa.Column[Any], id_: sa.Column[Any]) -> sa.Select[Any]:
    requested: sa.BindParameter[Any] = sa.bindparam(kind, expanding=True, literal_execute=True)
    return _row_of_kind(kind, name, id_).where(id_.in_(requested))


def _row_of_kind(kind: str, name: sa.Column[Any], *columns: Any) -> sa.Select[Any]:
    # PERF: one row for all names takes half the time of one row for each name (2026-11). A name has
    # at most 255 characters.
    values = json_sql.ShortJson(json_sql.JsonArray(portable_sql.StoredText(name), *columns))
    row: list[Any] = [sa.literal_column(f"'{kind}'"), json_sql.JsonList(values)]
    return sa.select(*row)
