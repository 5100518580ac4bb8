"""Builds the statements that select trees for candidates that use only sharing providers.

Trees with the same sharing providers have the same candidates of this kind. `page_reader` searches
these candidates in one tree for each set of sharing providers.
"""

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from placement.candidates.prefilter import MEMBERS, ROOTS, Clause
from placement.candidates.statements import IS_ROOT
from placement.db import provider_conditions
from placement.db.sqlalchemy import models

_AGGREGATES = models.resource_provider_aggregates


def aggregates_of_trees(
    aggregate_ids: Collection[int], conditions: Iterable[Clause]
) -> sa.Select[Any]:
    """Return a statement that returns which trees have a provider in which of these aggregates.

    It returns rows (root id, aggregate id), only for roots that satisfy the conditions.
    """
    link = _AGGREGATES
    return (
        _roots_of_members(link, conditions)
        .add_columns(link.c.aggregate_id)
        .where(link.c.aggregate_id.in_(provider_conditions.id_list(aggregate_ids)))
        .distinct()
    )


def one_tree_per_aggregate(
    aggregate_ids: Collection[int], conditions: Iterable[Clause]
) -> sa.Select[Any]:
    """Return a statement that returns, for each aggregate, one tree with a provider in it.

    It returns one row (root id,) for each aggregate. The root satisfies the conditions. If no such
    tree exists, the root id is NULL.
    """
    link, aggregate = _AGGREGATES, models.placement_aggregates
    first = _roots_of_members(link, conditions).where(link.c.aggregate_id == aggregate.c.id)
    return sa.select(first.limit(1).correlate(aggregate).scalar_subquery()).where(
        aggregate.c.id.in_(provider_conditions.id_list(aggregate_ids))
    )


def _roots_of_members(link: sa.FromClause, conditions: Iterable[Clause]) -> sa.Select[Any]:
    """Return a SELECT of the roots of the providers in the table `link`.

    :param link: a table that links providers with aggregates
    :param conditions: the conditions that a root must satisfy
    """
    return (
        sa.select(ROOTS.c.id)
        .select_from(link)
        .join(MEMBERS, MEMBERS.c.id == link.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == MEMBERS.c.root_provider_id)
        .where(*IS_ROOT, *conditions)
    )
