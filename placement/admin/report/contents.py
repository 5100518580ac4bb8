"""What the page shows: the cloud, its trees with their sums, and the findings of the audit.

A *tree* is a root provider with all its descendants. The *fullness* of a resource class in a tree
is its usage divided by its capacity, both summed over the providers of the tree. The *fullest
class* of a tree is the one with the highest fullness. A tree is *disabled* if its root has the
trait COMPUTE_STATUS_DISABLED: Nova does not schedule to such a host. As in `drain`, a tree is a
*pool* if its root has the trait MISC_SHARES_VIA_AGGREGATE, and no provider has CPUs. The other
trees are *hosts*.

Classes, traits, aggregates, and providers are identified by their database ids.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
from dataclasses import dataclass
import datetime
import functools
from typing import Any, NamedTuple

import orjson
import os_resource_classes
from oslo_config import cfg
import sqlalchemy as sa

from placement import version
from placement.admin import audit, cloud
from placement.admin.cloud import Cloud, root_id
from placement.admin.console import Names, Progress
from placement.admin.drain.reading import all_trees
from placement.admin.drain.report import Drain
from placement.admin.headroom import reading, result
from placement.admin.headroom.result import Headroom
from placement.candidates.model import Provider, Query
from placement.capacity import capacity_of
from placement.conf import database_url
from placement.db import sql
from placement.db.sqlalchemy import migration, models

_ALLOCATIONS, _CONSUMERS = models.allocations, models.consumers
_TYPES = models.consumer_types
_CPUS = (os_resource_classes.VCPU, os_resource_classes.PCPU)
_COLUMNS_OF_CONSUMER = (
    _ALLOCATIONS.c.resource_provider_id,
    _ALLOCATIONS.c.consumer_id,
    _CONSUMERS.c.project_id,
    _TYPES.c.name,
)
# An allocation can refer to a consumer that is missing.
_CONSUMERS_OF_PROVIDERS = (
    sa.select(
        *_COLUMNS_OF_CONSUMER,
        sql.JsonList(sql.JsonNumberArray(_ALLOCATIONS.c.resource_class_id, _ALLOCATIONS.c.used)),
    )
    .join_from(
        _ALLOCATIONS, _CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id, isouter=True
    )
    .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
    .group_by(*_COLUMNS_OF_CONSUMER)
)


# A resource class id, and amounts in units of the class by name (see `amounts`).
Amounts = tuple[int, Mapping[str, int]]
# Resource class id -> the sums of the amounts of inventories.
Totals = dict[int, Counter[str]]


def amounts(provider: Provider, disabled: bool) -> Iterator[Amounts]:
    """Yield what each inventory of a provider adds to the sums of its class.

    The `capacity` is negative if more is reserved than the total. It is `nominal` if nothing was
    reserved. What claims can use is `free`: an inventory whose usage exceeds its capacity, and an
    inventory of a disabled tree, count as 0.

    :param disabled: whether the tree of the provider is disabled
    """
    for class_id, inventory in provider.inventories.items():
        capacity = int(inventory.capacity)
        found = {
            'inventories': 1,
            'capacity': capacity,
            'used': inventory.used,
            'free': 0 if disabled else max(0, capacity - inventory.used),
            'reserved': inventory.reserved,
            'nominal': int(capacity_of(inventory.total, 0, inventory.allocation_ratio)),
        }
        yield class_id, found


def summed(found: Iterable[Amounts]) -> Totals:
    """Return the sums of amounts."""
    totals: Totals = defaultdict(Counter)
    for class_id, one in found:
        totals[class_id].update(one)
    return totals


class Consumer(NamedTuple):
    """A consumer with allocations in a tree, and the amounts that it uses there by class id.

    The name is the UUID, after the name if it is known. As in the API, the type is `unknown` if the
    consumer has none.
    """

    name: str
    type: str
    project: str
    amounts: Mapping[int, int]


class Part(NamedTuple):
    """An aggregate or a trait with the number of its trees, or a project with its consumers."""

    name: str
    number: int
    totals: Totals


class Tree(NamedTuple):
    """A root provider with its descendants.

    :ivar root: in a damaged database, the root of providers can be in another tree
    :ivar providers: the root, and then its descendants; each provider follows its parent
    :ivar parents: for each provider, the position of its parent in `providers`; -1 for the root
    :ivar totals: resource class id -> the sums over the tree
    :ivar fullest: the id of the fullest class; None if no class has capacity or usage
    :ivar fullness: the fullness of this class; -1 without such a class
    :ivar sharing: the sharing providers of other trees that are available to the tree
    """

    root: Provider
    providers: Sequence[Provider]
    parents: Sequence[int]
    totals: Totals
    fullest: int | None
    fullness: float
    disabled: bool
    is_pool: bool
    sharing: tuple[Provider, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the page shows.

    :ivar time: the time when the database was read, in UTC
    :ivar database: the URL of the database without a password
    :ivar schema: the revision of the schema
    :ivar version: the version of this software
    :ivar cloud: with the names before the UUIDs of aggregates and projects
    :ivar trees: all trees, the fullest first; trees with the same fullness are sorted by name
    :ivar consumers: root id -> the consumers with allocations in the tree
    :ivar projects: the projects with allocations, and what their consumers use
    :ivar headroom: the results of the queries
    :ivar drains: UUID of a root -> whether its tree can be drained, for all trees with allocations;
        None if this was not computed
    """

    time: datetime.datetime
    database: str
    schema: str
    version: str
    cloud: Cloud
    trees: Sequence[Tree]
    consumers: Mapping[int, Sequence[Consumer]]
    projects: Sequence[Part]
    findings: Sequence[audit.Finding]
    headroom: Sequence[Headroom]
    drains: Mapping[str, Drain] | None


# Reading ----------------------------------------------------------------------


def read(
    conn: sa.Connection,
    config: cfg.ConfigOpts,
    known: Names,
    queries: Mapping[str, Query[str]],
    with_drains: bool,
    progress: Progress,
) -> Contents:
    """Return what the page shows.

    :param conn: a connection from `engine.snapshot()`, so that all parts of the page
        show the same state
    :param known: the names that stand before UUIDs
    :param queries: the queries whose headroom the page shows, by name
    :param with_drains: whether to show which trees can be drained
    :raises CannotProceedError: a class or trait of a query does not exist, or `with_drains`, and
        the consumer of an allocation does not exist
    """
    incomplete = config.placement.incomplete_consumer_project_id
    findings = audit.findings(conn, incomplete_project=incomplete, report=progress)
    found = cloud.read(conn, progress)
    found = dataclasses.replace(
        found,
        aggregates={id_: known.in_text(uuid) for id_, uuid in found.aggregates.items()},
        projects={id_: known.in_text(uuid) for id_, uuid in found.projects.items()},
    )
    rows = conn.execute(_CONSUMERS_OF_PROVIDERS).all()
    with_ids = reading.with_ids(conn, found, queries.values())
    return Contents(
        time=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
        database=database_url.masked(config.placement_database.connection) or '',
        schema=migration.read_version(conn) or 'unknown',
        version=version.version_string(),
        cloud=found,
        trees=trees(found),
        consumers=_consumers(rows, found, known),
        projects=_projects(rows, found),
        findings=[known.in_values(finding) for finding in findings],
        headroom=result.of_queries(found, queries, with_ids, progress=progress),
        drains={one.trees[0]['uuid']: one for one in all_trees(conn, found, progress)}
        if with_drains
        else None,
    )


def _consumers(rows: Iterable[Any], read: Cloud, known: Names) -> dict[int, list[Consumer]]:
    """Return the consumers of each tree, by the id of the root provider."""
    roots = {one.id: root_id(one, read.names) for one in read.providers}
    # Many consumers have the same amounts.
    amounts_of = functools.cache(lambda text: dict(orjson.loads(text)))
    of_trees: dict[int, dict[str, Consumer]] = defaultdict(dict)
    for provider_id, uuid, project_id, type_, text in rows:
        root = roots.get(provider_id)
        if root is None:
            continue
        amounts = amounts_of(text)
        of_tree = of_trees[root]
        if (other := of_tree.get(uuid)) is not None:
            amounts = dict(Counter(other.amounts) + Counter(amounts))
        project = _project(read, project_id)
        of_tree[uuid] = Consumer(known.in_text(uuid), type_ or 'unknown', project, amounts)
    return {root: list(of_tree.values()) for root, of_tree in of_trees.items()}


def _projects(rows: Iterable[Any], read: Cloud) -> list[Part]:
    """Return the projects; consumers without a row belong to none."""
    owned = {(project_id, uuid) for _, uuid, project_id, *_ in rows if project_id is not None}
    counts = Counter(_project(read, project_id) for project_id, _ in owned)
    usage: dict[str, Totals] = defaultdict(dict)
    for project_id, class_id, used in read.usage:
        usage[_project(read, project_id)][class_id] = Counter(used=used)
    return [Part(name, count, usage[name]) for name, count in counts.items() if name in usage]


def _project(read: Cloud, project_id: int | None) -> str:
    if project_id is None:
        return 'unknown project'
    # An allocation can refer to a consumer whose project is missing.
    return read.projects.get(project_id, f'unknown project {project_id}')


# Trees ------------------------------------------------------------------------


def trees(read: Cloud) -> list[Tree]:
    """Return all trees of any database, including damaged ones, the fullest first."""
    members: dict[int, list[Provider]] = defaultdict(list)
    by_id = {provider.id: provider for provider in read.providers}
    for provider in read.providers:
        members[root_id(provider, by_id)].append(provider)
    sharing_trait, disabled_trait = read.sharing_trait, read.disabled_trait
    cpus = {id_ for id_, name in read.classes.items() if name in _CPUS}
    # A search ignores trees without a valid root.
    anchors = cloud.anchors(read.providers, sharing_trait)
    sharing = {anchor.root.id: anchor.sharing_providers for anchor in anchors}
    found = []
    for id_, of_root in members.items():
        root = by_id[id_]
        ordered = list(_parents_first(root, of_root, read.names))
        positions = {provider.id: position for position, provider in enumerate(ordered)}
        # A provider whose parent is missing is displayed below the root.
        parents = [-1, *(positions.get(one.parent_id or root.id, 0) for one in ordered[1:])]
        disabled = disabled_trait in root.traits
        totals = summed(item for one in ordered for item in amounts(one, disabled))
        fullest, fullness = _fullest(totals, read)
        is_pool = sharing_trait in root.traits and cpus.isdisjoint(totals)
        available = sharing.get(id_, ())
        found.append(
            Tree(root, ordered, parents, totals, fullest, fullness, disabled, is_pool, available)
        )
    return sorted(found, key=lambda tree: (-tree.fullness, read.names[tree.root.id]))


def _parents_first(
    root: Provider, members: Sequence[Provider], names: Mapping[int, str]
) -> Iterator[Provider]:
    """Yield the root and then its descendants: each provider directly follows its parent's subtree.

    Providers that are not descendants of the root, because a parent is missing or is part of a
    cycle, are displayed below the root.
    """
    left = {provider.id: provider for provider in members}
    children: dict[int | None, list[Provider]] = defaultdict(list)
    for provider in sorted(members, key=lambda one: names[one.id], reverse=True):
        children[provider.parent_id].append(provider)
    waiting = [*reversed(members), root]
    while waiting:
        provider = waiting.pop()
        if left.pop(provider.id, None) is not None:
            yield provider
            waiting += children[provider.id]


def _fullest(totals: Totals, read: Cloud) -> tuple[int | None, float]:
    """Return the class with the highest fullness, and its fullness.

    Of several classes, it is the first one by name. A class without capacity and usage has no
    fullness; that of other classes without capacity is infinite.
    """
    fullness = {
        class_id: total['used'] / total['capacity'] if total['capacity'] > 0 else float('inf')
        for class_id, total in totals.items()
        if total['used'] or total['capacity']
    }
    if not fullness:
        return None, -1.0
    fullest = min(fullness, key=lambda id_: (-fullness[id_], read.class_name(id_), id_))
    return fullest, fullness[fullest]
