"""Reads the contents of the database with a fixed number of statements.

The caller provides a connection with one snapshot for all statements.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
import datetime
import functools
from typing import Any

import orjson
import os_traits
import sqlalchemy as sa

from placement import version
from placement.admin.names import Names
from placement.admin.progress import Progress
from placement.admin.report.model import Cloud, Consumer, Origin, ProjectUsage, root_id
from placement.candidates import pages
from placement.conf import database_url
from placement.db import sql
from placement.db.sqlalchemy import migration, models

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_UNKNOWN_TYPE = 'unknown'


def _pairs(table: sa.Table, column: str) -> sa.Select[Any]:
    return sa.select(table.c.id, table.c[column])


# The id of the project, the id of the resource class, and the usage.
USAGE_OF_PROJECTS = (
    sa.select(
        _CONSUMERS.c.project_id,
        _ALLOCATIONS.c.resource_class_id,
        sa.func.sum(_ALLOCATIONS.c.used).label('used'),
    )
    .join_from(_ALLOCATIONS, _CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
    .group_by(_CONSUMERS.c.project_id, _ALLOCATIONS.c.resource_class_id)
)
# The name of a step of the work -> its statement.
_STATEMENTS: dict[str, Any] = {
    'providers': pages.columns(with_aggregates=True),
    'names': sa.select(_PROVIDERS.c.id, _PROVIDERS.c.name, models.generation(_PROVIDERS)),
    'classes': _pairs(models.resource_classes, 'name'),
    'traits': _pairs(models.traits, 'name'),
    'aggregates': _pairs(models.placement_aggregates, 'uuid'),
    'projects': _pairs(models.projects, 'external_id'),
    'consumer types': _pairs(models.consumer_types, 'name'),
    # An allocation can refer to a consumer that is missing.
    'consumers of providers': (
        sa.select(
            _ALLOCATIONS.c.resource_provider_id,
            _ALLOCATIONS.c.consumer_id,
            _CONSUMERS.c.project_id,
            _CONSUMERS.c.consumer_type_id,
            sql.JsonList(
                sql.JsonNumberArray(_ALLOCATIONS.c.resource_class_id, _ALLOCATIONS.c.used)
            ),
        )
        .join_from(
            _ALLOCATIONS,
            _CONSUMERS,
            _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id,
            isouter=True,
        )
        .group_by(
            _ALLOCATIONS.c.resource_provider_id,
            _ALLOCATIONS.c.consumer_id,
            _CONSUMERS.c.project_id,
            _CONSUMERS.c.consumer_type_id,
        )
    ),
    'usage of projects': USAGE_OF_PROJECTS,
    'counts': sa.select(
        *(
            sa.select(sa.func.count()).select_from(table).scalar_subquery().label(table.name)
            for table in (_CONSUMERS, _ALLOCATIONS, models.projects, models.users)
        )
    ),
}


def cloud(conn: sa.Connection, progress: Progress, known: Names) -> Cloud:
    """Return the contents of the database.

    :param known: the names that stand before UUIDs
    """
    rows: dict[str, Any] = {}
    with progress('Reading', len(_STATEMENTS)) as advance:
        for name, statement in _STATEMENTS.items():
            rows[name] = conn.execute(statement).all()
            advance(1)
    traits = dict(map(tuple, rows['traits']))
    trait_ids = {name: id_ for id_, name in traits.items()}
    # An allocation can refer to a consumer whose project is missing.
    projects = {id_: known.in_text(uuid) for id_, uuid in rows['projects']}
    providers = pages.providers_of(rows['providers'])
    names = {id_: name or '' for id_, name, _ in rows['names']}
    return Cloud(
        providers=providers,
        names=names,
        generations={id_: generation for id_, _, generation in rows['names']},
        classes=dict(map(tuple, rows['classes'])),
        traits=traits,
        aggregates={id_: known.in_text(uuid) for id_, uuid in rows['aggregates']},
        sharing_trait=trait_ids.get(os_traits.MISC_SHARES_VIA_AGGREGATE),
        disabled_trait=trait_ids.get(os_traits.COMPUTE_STATUS_DISABLED),
        consumers=_consumers(
            rows['consumers of providers'],
            {one.id: root_id(one, names) for one in providers},
            projects,
            dict(map(tuple, rows['consumer types'])),
            known,
        ),
        projects=[
            ProjectUsage(_project(projects, project_id), class_id, int(used))
            for project_id, class_id, used in rows['usage of projects']
        ],
        project_consumers=_consumers_of_projects(rows['consumers of providers'], projects),
        counts=rows['counts'][0]._asdict(),
    )


def _consumers(
    rows: Iterable[Any],
    roots: Mapping[int, int],
    projects: Mapping[int, str],
    types: Mapping[int, str],
    known: Names,
) -> dict[int, list[Consumer]]:
    """Return the consumers of each tree, by the id of the root provider.

    :param rows: those of the statement 'consumers of providers'
    :param roots: provider id -> root id
    """
    # Many consumers have the same amounts.
    amounts_of = functools.cache(lambda text: dict(orjson.loads(text)))
    trees: dict[int, dict[str, Consumer]] = defaultdict(dict)
    for provider_id, uuid, project_id, type_id, text in rows:
        root = roots.get(provider_id)
        if root is None:
            continue
        amounts = amounts_of(text)
        of_tree = trees[root]
        if (other := of_tree.get(uuid)) is not None:
            amounts = dict(Counter(other.amounts) + Counter(amounts))
        type_ = types.get(type_id, _UNKNOWN_TYPE)
        of_tree[uuid] = Consumer(
            known.in_text(uuid), type_, _project(projects, project_id), amounts
        )
    return {root: list(of_tree.values()) for root, of_tree in trees.items()}


def _consumers_of_projects(rows: Iterable[Any], projects: Mapping[int, str]) -> Mapping[str, int]:
    """Return the number of consumers with allocations by project; without missing consumers."""
    owned = {(project_id, uuid) for _, uuid, project_id, *_ in rows if project_id is not None}
    return Counter(_project(projects, project_id) for project_id, _ in owned)


def _project(names: Mapping[int, str], project_id: int | None) -> str:
    if project_id is None:
        return 'unknown project'
    return names.get(project_id, f'unknown project {project_id}')


def origin(conn: sa.Connection, database: str) -> Origin:
    """Return from what the report is made.

    :param database: the URL of the database
    """
    has_revision = sa.inspect(conn).has_table(migration.REVISION_TABLE)
    return Origin(
        time=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
        database=database_url.masked(database) or '',
        schema=(migration.read_revision(conn) if has_revision else None) or 'unknown',
        version=version.version_string(),
    )
