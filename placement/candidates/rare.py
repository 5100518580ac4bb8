"""Restricts a search to the trees that have a rare trait or aggregate.

A trait or an aggregate is *rare* if at most MAX_PROVIDERS providers have it. The conditions of
`prefilter` are evaluated root by root, so a search for a trait of one provider would examine all
trees. If a query requires something rare, its pages are restricted to the trees of these providers,
which the database finds with the index on the trait or aggregate.

PERF: with a trait of one host, limit=10 took 2.8 s with 1,000,000 hosts and 20 ms with 10,000 hosts
(MariaDB, tools/perf, 2026-11). For a trait or aggregate that is not rare, the look-up of its name
takes less than 0.1 ms longer, because the database counts at most MAX_PROVIDERS rows.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.candidates import model
from placement.candidates.prefilter import Clause, RootId
from placement.db import provider_conditions
from placement.db.sqlalchemy import models

MAX_PROVIDERS = 1000

_OWNER = models.resource_providers.alias('owner')
_TRAIT_ID = models.resource_provider_traits.alias('rare_trait').c.trait_id
_AGGREGATE_ID = models.resource_provider_aggregates.alias('rare_aggregate').c.aggregate_id


def is_rare(id_: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return whether at most MAX_PROVIDERS providers have a trait, or are in an aggregate.

    :param id_: the id column of a table with names; false for tables other than traits and
        aggregates
    """
    links = {models.traits: _TRAIT_ID, models.placement_aggregates: _AGGREGATE_ID}
    if id_.table not in links:
        return sa.false()
    rows: sa.Select[Any] = sa.select(sa.literal_column('1')).where(links[id_.table] == id_)
    next_provider = rows.correlate(id_.table).limit(1).offset(MAX_PROVIDERS)
    return next_provider.scalar_subquery().is_(None)


def root_conditions(query: model.Query[int], has_sharing: bool, root: RootId) -> list[Clause]:
    """Return at most one condition: that the tree has a provider with something rare.

    :param has_sharing: whether sharing providers exist. If so, a sharing provider of another tree
        may have the required traits and aggregates, except for those of root_required
    """
    # The conditions of groups; a sharing provider can satisfy them.
    groups = () if has_sharing else query.groups
    traits = [frozenset((trait,)) for trait in sorted(query.root_required)]
    traits += [any_set for group in groups for any_set in group.required]
    aggregates = [any_set for group in groups for any_set in group.member_of]
    rare = [
        *(_Rare(_TRAIT_ID, any_set) for any_set in traits if any_set <= query.rare_traits),
        *(
            _Rare(_AGGREGATE_ID, any_set)
            for any_set in aggregates
            if any_set <= query.rare_aggregates
        ),
    ]
    return [root.in_(_roots(min(rare, key=lambda one: len(one.any_set))))] if rare else []


class _Rare(NamedTuple):
    """An any-set whose traits or aggregates are all rare, and the column that links to them."""

    link_id: sa.Column[Any]
    any_set: frozenset[int]


def _roots(rare: _Rare) -> sa.Select[Any]:
    """Return a SELECT of the root ids of all providers that have a trait or aggregate."""
    link = rare.link_id.table
    return (
        sa.select(_OWNER.c.root_provider_id)
        .select_from(link)
        .join(_OWNER, _OWNER.c.id == link.c.resource_provider_id)
        .where(rare.link_id.in_(provider_conditions.id_list(rare.any_set)))
    )
