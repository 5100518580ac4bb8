"""Reads the cloud: the provider trees, their names, and their usage.

The report, the exporter, `headroom`, `drain`, and `explain` read it, and `assume` changes what was
read. The number of statements does not depend on the size of the cloud. The caller provides a
connection with one snapshot for all statements.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.admin.console import Progress, silent
from placement.candidates import names, pages, request
from placement.candidates.model import Anchor, Provider, Query
from placement.candidates.sharing import SharingProviders
from placement.db import sql
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_CONSUMERS = models.consumers
_ALLOCATIONS = models.allocations


def _count(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).select_from(table).where(*conditions).scalar_subquery()


_TREES = pages.columns(with_aggregates=True)
_NAMES = sa.select(_PROVIDERS.c.id, _PROVIDERS.c.name, models.generation(_PROVIDERS))
_AGGREGATES = models.placement_aggregates
# The columns with the names of what is not a provider, in the order of the fields of `Cloud`.
_OTHER_NAMES: tuple[sa.Column[Any], ...] = (
    models.resource_classes.c.name,
    models.traits.c.name,
    _AGGREGATES.c.uuid,
    models.projects.c.external_id,
)
_USAGE_OF_PROJECTS = (
    sa.select(
        _CONSUMERS.c.project_id,
        _ALLOCATIONS.c.resource_class_id,
        sa.func.sum(_ALLOCATIONS.c.used),
    )
    .join_from(_ALLOCATIONS, _CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
    .group_by(_CONSUMERS.c.project_id, _ALLOCATIONS.c.resource_class_id)
)
_COUNTS = sa.select(
    # Old releases left consumers without allocations in the database.
    _count(_CONSUMERS, sa.exists().where(_ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)),
    _count(_ALLOCATIONS),
)
_STATEMENTS: tuple[sa.Executable, ...] = (
    # The first statement decides which state the others read.
    _COUNTS,
    _TREES,
    _NAMES,
    sa.union_all(
        *(
            sa.select(sa.literal_column(str(kind)), name.table.c.id, sql.StoredText(name))
            for kind, name in enumerate(_OTHER_NAMES)
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """The cloud. Classes, traits, aggregates, projects, and providers are database ids.

    :ivar providers: all providers with traits, aggregates, inventories, and usage, sorted by id
    :ivar names: provider -> name; empty if it is NULL
    :ivar generations: provider -> generation
    :ivar classes: resource class -> name
    :ivar traits: trait -> name
    :ivar aggregates: aggregate -> UUID
    :ivar projects: project -> its UUID or other id
    :ivar usage: the project, the resource class, and the usage of its consumers
    :ivar consumers: the number of consumers with allocations
    :ivar allocations: the number of allocations, each of one consumer, provider, and class
    :ivar removed: the ids of the providers of each tree that `assume` removed. The consumers are
        read from the database, where they still have allocations from these providers
    """

    providers: Sequence[Provider]
    names: Mapping[int, str]
    generations: Mapping[int, int]
    classes: Mapping[int, str]
    traits: Mapping[int, str]
    aggregates: Mapping[int, str]
    projects: Mapping[int, str]
    usage: Sequence[tuple[int, int, int]]
    consumers: int
    allocations: int
    removed: Sequence[frozenset[int]] = ()

    @property
    def sharing_trait(self) -> int | None:
        """The id of MISC_SHARES_VIA_AGGREGATE; None if the trait does not exist."""
        return self._trait(os_traits.MISC_SHARES_VIA_AGGREGATE)

    @property
    def disabled_trait(self) -> int | None:
        """The id of COMPUTE_STATUS_DISABLED; None if the trait does not exist."""
        return self._trait(os_traits.COMPUTE_STATUS_DISABLED)

    @property
    def unlisted(self) -> int:
        """The number of providers that the API does not list.

        They are those of an old release without a root, or of a damaged database whose root does
        not exist.
        """
        existing = {one.id for one in self.providers}
        return sum(one.root_id not in existing for one in self.providers)

    @property
    def ids(self) -> request.Ids:
        """The ids of all names."""
        return request.Ids(
            classes={name: id_ for id_, name in self.classes.items()},
            traits={name: id_ for id_, name in self.traits.items()},
            aggregates={uuid: id_ for id_, uuid in self.aggregates.items()},
            roots={one.uuid: one.root_id for one in self.providers if one.root_id is not None},
            sharing_id=self.sharing_trait,
        )

    def class_name(self, class_id: int) -> str:
        """Return the name of a resource class, which can be missing in a damaged database."""
        return self.classes.get(class_id, f'unknown class {class_id}')

    def _trait(self, name: str) -> int | None:
        return next((id_ for id_, one in self.traits.items() if one == name), None)


def read(conn: sa.Connection, progress: Progress = silent, with_usage: bool = True) -> Cloud:
    """Return the cloud.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param with_usage: whether to read the usage of the projects, which reads all allocations
    """
    statements = [*_STATEMENTS, *([_USAGE_OF_PROJECTS] if with_usage else [])]
    rows = []
    with progress('Reading', len(statements)) as advance:
        for statement in statements:
            rows.append([tuple(row) for row in conn.execute(statement)])
            advance(1)
    ((consumers, allocations),), providers, provider_names, other_names, *usage = rows
    by_kind: list[Any] = [{} for _ in _OTHER_NAMES]
    for kind, id_, name in other_names:
        by_kind[kind][id_] = name
    classes, traits, aggregates, projects = by_kind
    return Cloud(
        providers=pages.providers_of(providers),
        names={id_: name or '' for id_, name, _ in provider_names},
        generations={id_: generation for id_, _, generation in provider_names},
        classes=classes,
        traits=traits,
        aggregates=aggregates,
        projects=projects,
        usage=[
            (project, class_id, int(used)) for page in usage for project, class_id, used in page
        ],
        consumers=consumers,
        allocations=allocations,
    )


def look_up(conn: sa.Connection, query: Query[str], known: request.Ids) -> request.Ids:
    """Return the ids of all names of a query, also of those that `assume` added.

    :param known: the ids of all names of the cloud (`Cloud.ids`)
    """
    stored = names.look_up(conn, query)
    return replace(
        stored,
        aggregates={**stored.aggregates, **known.aggregates},
        roots={**stored.roots, **known.roots},
        sharing_id=known.sharing_id,
    )


def root_id(provider: Provider, existing: Container[int]) -> int:
    """Return the id of the root of a provider; its own id if the root is missing.

    :param existing: the ids of all providers
    """
    return provider.root_id if provider.root_id in existing else provider.id


def anchors(
    found: Iterable[Provider], sharing_trait: int | None, with_nested: bool = False
) -> list[Anchor]:
    """Return the trees with the sharing providers available to them, sorted by the id of the root.

    As in a search, there is no anchor of providers without a valid root.

    :param found: all providers, sorted by id
    :param sharing_trait: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has it
    :param with_nested: whether a query has same_subtree, which needs the whole trees of sharing
        providers
    """
    trees: dict[int, list[Provider]] = defaultdict(list)
    roots = {}
    for provider in found:
        trees[provider.root_id].append(provider)
        if provider.root_id == provider.id and provider.parent_id is None:
            roots[provider.id] = provider
    sharing = SharingProviders(sharing_trait)
    sharing.add_all([provider for id_ in roots for provider in trees[id_]])
    result = []
    for id_, root in roots.items():
        available = sharing.of_tree(id_, trees[id_])
        nested = sharing.nested_trees(available) if with_nested else ()
        result.append(Anchor(root, tuple(trees[id_]), available, nested))
    return result


def unlisted_notice(count: int) -> str | None:
    """Return the sentence about providers that are missing from a result; None without one.

    :param count: the number of these providers
    """
    if not count:
        return None
    return (
        f'The result lacks the resource providers without a root ({count}). Run `placement-manage '
        'audit --only root-missing`.'
    )
