"""Reads the conditions and the consumers, and drains trees one after another.

All functions take a connection on which all statements read the same snapshot of a database.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
import dataclasses
from typing import Any

import sqlalchemy as sa

from placement import microversion
from placement.admin import cloud, console, named_trees, query_text
from placement.admin.cloud import Cloud
from placement.admin.console import CannotProceedError, Progress
from placement.admin.drain import report
from placement.admin.drain.places import Consumer, Trees
from placement.admin.drain.report import Drain
from placement.candidates import model, request
from placement.db.sqlalchemy import models

_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_TYPES = models.consumer_types
_PROJECTS = models.projects
_USERS = models.users
_ALLOCATIONS_OF_CONSUMERS = (
    sa.select(
        _ALLOCATIONS.c.consumer_id,
        _ALLOCATIONS.c.resource_provider_id,
        _ALLOCATIONS.c.resource_class_id,
        _ALLOCATIONS.c.used,
        _CONSUMERS.c.uuid,
        _TYPES.c.name,
        _PROJECTS.c.external_id,
        _USERS.c.external_id,
        models.generation(_CONSUMERS),
    )
    .select_from(_ALLOCATIONS)
    .outerjoin(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
    .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
    .outerjoin(_PROJECTS, _PROJECTS.c.id == _CONSUMERS.c.project_id)
    .outerjoin(_USERS, _USERS.c.id == _CONSUMERS.c.user_id)
)
# The number of trees whose consumers are read at once.
_PAGE = 128
# The parameters of --where.
_WHERE = ('member_of', 'required', 'root_required')


def conditions(conn: sa.Connection, found: Cloud, text: str = '') -> model.Query[int]:
    """Return --where as a query with one request group, without amounts.

    :param found: all of the cloud, except for the usage of projects
    :param text: the query string; empty for no conditions
    :raises CannotProceedError: the API refuses the query string, it has other parameters, or it
        names a trait that does not exist
    """
    with query_text.refusing('--where is not valid: '):
        pairs = query_text.pairs(text)
        if other := sorted({key for key, _ in pairs} - {*_WHERE}):
            shown = console.printable(', '.join(other))
            raise CannotProceedError(f'--where accepts {", ".join(_WHERE)}, but not {shown}.')
        # A query has to request resources.
        query = request.parse([('resources', 'VCPU:1'), *pairs], microversion.MAX_VERSION)
        (group,) = query.groups
        query = dataclasses.replace(query, groups=(dataclasses.replace(group, amounts=()),))
        return request.with_ids(query, cloud.look_up(conn, query, found.ids))


def consumers_of_trees(conn: sa.Connection, found: Cloud, roots: Collection[int]) -> list[Consumer]:
    """Return the consumers with allocations from these trees, with all their allocations.

    :raises CannotProceedError: a consumer does not exist
    """
    return _consumers(conn, found, named_trees.consumers_of_trees(roots))


def consumers(conn: sa.Connection, found: Cloud, uuids: Sequence[str]) -> list[Consumer]:
    """Return these consumers.

    :raises CannotProceedError: a consumer has no allocations, or does not exist
    """
    # The UUIDs as given, and with lowercase letters, as the API stores most UUIDs.
    spellings = sorted({spelling for uuid in uuids for spelling in (uuid, uuid.lower())})
    by_uuid = {one.uuid.lower(): one for one in _consumers(conn, found, spellings)}
    for uuid in uuids:
        if uuid.lower() not in by_uuid:
            shown = console.printable(uuid)
            raise CannotProceedError(f'The consumer {shown} does not exist or has no allocations.')
    return [by_uuid[key] for key in dict.fromkeys(map(str.lower, uuids))]


def _consumers(conn: sa.Connection, found: Cloud, uuids: Any) -> list[Consumer]:
    """Return consumers with all their allocations.

    :param uuids: the UUIDs, or a SELECT that returns them
    """
    rows = conn.execute(_ALLOCATIONS_OF_CONSUMERS.where(_ALLOCATIONS.c.consumer_id.in_(uuids)))
    # PERF: a Counter for each consumer takes a tenth of the time of --each (2026-11).
    amounts: dict[tuple[Any, ...], dict[tuple[int, int], int]] = defaultdict(
        lambda: defaultdict(int)
    )
    for given, provider_id, class_id, used, *consumer in rows:
        if consumer[0] is None:
            raise CannotProceedError(
                f'The consumer {console.printable(given)} of an allocation does not exist. Run '
                '`placement-manage audit --only orphan-allocation`.'
            )
        amounts[tuple(consumer)][provider_id, class_id] += used
    stored = (
        Consumer._make((*consumer, dict(sorted(sums.items()))))
        for consumer, sums in amounts.items()
    )
    remaining = (_after_removals(consumer, found.removed) for consumer in stored)
    return [consumer for consumer in remaining if consumer.allocations]


def _after_removals(consumer: Consumer, removed: Iterable[frozenset[int]]) -> Consumer:
    """Return a consumer after the removal of trees; each one increments the generation."""
    for tree in removed:
        remaining = {key: n for key, n in consumer.allocations.items() if key[0] not in tree}
        if len(remaining) < len(consumer.allocations):
            generation = consumer.generation + 1
            consumer = consumer._replace(allocations=remaining, generation=generation)
    return consumer


# Drains one after another ---------------------------------------------------------


def each(
    conn: sa.Connection, found: Trees, roots: Sequence[int], progress: Progress
) -> Iterator[Drain]:
    """Yield the result of each tree, drained from the present state, in the order of the roots.

    :param roots: the ids of the roots; none for all trees with allocations
    :raises CannotProceedError: a consumer does not exist
    """
    drained = roots or list(found.anchors)
    with progress('Planning drains', len(drained)) as advance:
        for start in range(0, len(drained), _PAGE):
            page: dict[int, list[Consumer]] = {id_: [] for id_ in drained[start : start + _PAGE]}
            for consumer in consumers_of_trees(conn, found.cloud, page.keys()):
                used = {found.roots.get(id_) for id_, _ in consumer.allocations}
                for root_id in page.keys() & used:
                    page[root_id].append(consumer)
            for root_id, moving in page.items():
                if moving or roots:
                    yield report.drain(found, moving, frozenset({root_id}), len(drained) == 1)
                advance(1)


def all_trees(conn: sa.Connection, found: Cloud, progress: Progress) -> list[Drain]:
    """Return the result of each tree with allocations, without conditions.

    :param found: all of the cloud, except for the usage of projects
    :raises CannotProceedError: a consumer does not exist
    """
    return list(each(conn, Trees(found, conditions(conn, found)), (), progress))
