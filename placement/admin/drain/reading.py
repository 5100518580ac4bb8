"""Reads the provider trees, the consumers, and what the bodies of the moves need.

All functions take a connection on which all statements read the same snapshot of a database.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import microversion
from placement.admin import named_trees, query_text, tables
from placement.admin.drain import requests
from placement.admin.drain.requests import Allocation, Cloud, Conditions, Consumer, Owner
from placement.admin.failure import CannotProceedError
from placement.admin.headroom import reading
from placement.admin.progress import Progress
from placement.candidates import model, names, request
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_TYPES = models.consumer_types
_CLASSES = models.resource_classes
_TRAITS = models.traits
_CLASS_NAMES = sa.select(_CLASSES.c.id, _CLASSES.c.name)
_PROJECTS = models.projects
_USERS = models.users
# The number of trees whose consumers are read at once.
_PAGE = 128
# The number of consumers whose owners are read at once.
_OWNERS = 500
# The parameters of --where.
_WHERE = ('member_of', 'required', 'root_required')
_NO_QUERY: model.Query[int] = model.Query(())


@dataclass(frozen=True, slots=True)
class Options:
    """The conditions of the command line.

    :ivar where: the result of `parse_where`
    :ivar same_aggregates: whether --same-aggregates is given
    :ivar same_traits: the patterns of --same-traits
    """

    where: model.Query[str] = field(default_factory=lambda: parse_where(''))
    same_aggregates: bool = False
    same_traits: tuple[str, ...] = ()


def parse_where(text: str) -> model.Query[str]:
    """Return --where as a query with one request group, without amounts.

    :param text: the query string; empty for no conditions
    :raises CannotProceedError: the API refuses the query string, or it has other parameters
    """
    with reading.refusing('--where is not valid: '):
        pairs = query_text.pairs(text)
    if other := sorted({key for key, _ in pairs} - {*_WHERE}):
        raise CannotProceedError(
            f'--where accepts {", ".join(_WHERE)}, but not {tables.printable(", ".join(other))}.'
        )
    with reading.refusing('--where is not valid: '):
        # A query has to request resources.
        query = request.parse([('resources', 'VCPU:1'), *pairs], microversion.MAX_VERSION)
    (group,) = query.groups
    return dataclasses.replace(query, groups=(dataclasses.replace(group, amounts=()),))


def cloud(conn: sa.Connection, options: Options, progress: Progress) -> tuple[Cloud, Conditions]:
    """Read all provider trees, and what the conditions of the command line need.

    :raises CannotProceedError: --where names a trait that does not exist
    """
    ids = names.look_up(conn, options.where)
    with reading.refusing('--where is not valid: '):
        with_ids = request.with_ids(options.where, ids)
    traits = {name: id_ for id_, name in conn.execute(sa.select(_TRAITS.c.id, _TRAITS.c.name))}
    disabled = traits.get(os_traits.COMPUTE_STATUS_DISABLED)
    anchors = reading.anchors(conn, _NO_QUERY, ids.sharing_id, True, progress)
    result = Cloud(
        anchors={anchor.root.id: anchor for anchor in anchors},
        providers={provider.id: provider for anchor in anchors for provider in anchor.tree},
        sharing_id=ids.sharing_id,
        names=reading.root_names(conn),
        classes={row.id: row.name for row in conn.execute(_CLASS_NAMES)},
    )
    # A root with this trait is no place for a consumer, so no consumer needs the trait.
    same_traits = requests.matching(options.same_traits, traits) - {disabled}
    conditions = Conditions(
        root_required=with_ids.root_required,
        root_forbidden=with_ids.root_forbidden | ({disabled} if disabled else set()),
        where=with_ids.groups[0],
        same_aggregates=options.same_aggregates,
        same_traits=same_traits,
    )
    return result, conditions


def roots_to_copy(
    conn: sa.Connection, providers: Sequence[str], uuids: Sequence[str]
) -> frozenset[int]:
    """Return the roots of all trees that providers belong to, or that consumers use.

    :param providers: names or UUIDs of providers; those that do not exist are skipped
    :param uuids: the UUIDs of consumers
    """
    used = (
        sa.select(_PROVIDERS.c.root_provider_id)
        .join(_ALLOCATIONS, _ALLOCATIONS.c.resource_provider_id == _PROVIDERS.c.id)
        .where(_ALLOCATIONS.c.consumer_id.in_(_spellings(uuids)))
    )
    found = {
        *(named.root_id for named in named_trees.find(conn, providers).values()),
        *(conn.scalars(used) if uuids else ()),
    }
    return frozenset(root for root in found if root is not None)


def pages_of_trees(
    conn: sa.Connection, of: Cloud, roots: Sequence[int]
) -> Iterator[dict[int, list[Consumer]]]:
    """Yield root id -> the consumers with allocations from its tree, for all these roots, in pages.

    :raises CannotProceedError: a consumer does not exist
    """
    for start in range(0, len(roots), _PAGE):
        page = roots[start : start + _PAGE]
        consumers: dict[int, list[Consumer]] = {root: [] for root in page}
        for consumer in consumers_of_trees(conn, page):
            for root in {of.root_of(one.provider_id) for one in consumer.allocations}:
                if root in consumers:
                    consumers[root].append(consumer)
        yield consumers


def consumers_of_trees(conn: sa.Connection, roots: Collection[int]) -> list[Consumer]:
    """Return the consumers with allocations from these trees, with all their allocations.

    :raises CannotProceedError: a consumer does not exist
    """
    return _consumers(conn, named_trees.consumers_of_trees(roots))


def consumers(conn: sa.Connection, uuids: Sequence[str]) -> list[Consumer]:
    """Return these consumers.

    :raises CannotProceedError: a consumer has no allocations, or does not exist
    """
    found = {consumer.uuid.lower(): consumer for consumer in _consumers(conn, _spellings(uuids))}
    for uuid in uuids:
        if uuid.lower() not in found:
            shown = tables.printable(uuid)
            raise CannotProceedError(f'The consumer {shown} does not exist or has no allocations.')
    return [found[key] for key in dict.fromkeys(map(str.lower, uuids))]


def _spellings(given: Iterable[str]) -> list[str]:
    """Return texts as given, and with lowercase letters, as the API stores most UUIDs."""
    return sorted({spelling for text in given for spelling in (text, text.lower())})


def _consumers(conn: sa.Connection, uuids: Any) -> list[Consumer]:
    """Return consumers with all their allocations.

    :param uuids: the UUIDs, or a SELECT that returns them
    """
    query = (
        sa.select(
            _ALLOCATIONS.c.consumer_id,
            _ALLOCATIONS.c.resource_provider_id,
            _ALLOCATIONS.c.resource_class_id,
            _ALLOCATIONS.c.used,
            _CONSUMERS.c.uuid,
            _TYPES.c.name,
        )
        .select_from(_ALLOCATIONS)
        .outerjoin(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
        .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
        .where(_ALLOCATIONS.c.consumer_id.in_(uuids))
    )
    amounts: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    types: dict[str, str | None] = {}
    for given, provider_id, class_id, used, uuid, type_ in conn.execute(query):
        if uuid is None:
            raise CannotProceedError(
                f'The consumer {tables.printable(given)} of an allocation does not exist. Run '
                '`placement-manage audit --only orphan-allocation`.'
            )
        types[uuid] = type_
        of_consumer = amounts[uuid]
        key = provider_id, class_id
        of_consumer[key] = of_consumer.get(key, 0) + used
    return [
        Consumer(
            uuid,
            types[uuid],
            tuple(Allocation(*key, used) for key, used in sorted(of_consumer.items())),
        )
        for uuid, of_consumer in amounts.items()
    ]


def owners(conn: sa.Connection, uuids: Iterable[str]) -> Mapping[str, Owner]:
    """Return the owner of each consumer."""
    given = list(uuids)
    found: dict[str, Owner] = {}
    for start in range(0, len(given), _OWNERS):
        query = (
            sa.select(
                _CONSUMERS.c.uuid,
                _PROJECTS.c.external_id,
                _USERS.c.external_id,
                models.generation(_CONSUMERS),
            )
            .select_from(_CONSUMERS)
            .outerjoin(_PROJECTS, _PROJECTS.c.id == _CONSUMERS.c.project_id)
            .outerjoin(_USERS, _USERS.c.id == _CONSUMERS.c.user_id)
            .where(_CONSUMERS.c.uuid.in_(given[start : start + _OWNERS]))
        )
        found.update((uuid, Owner(*owner)) for uuid, *owner in conn.execute(query))
    return found
