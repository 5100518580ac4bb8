"""Reads the contents of the database with a fixed number of statements.

The caller provides a connection with one snapshot for all statements.
"""

import datetime
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import version
from placement.admin.progress import Progress
from placement.admin.report.model import Cloud, Origin, ProjectUsage
from placement.candidates import tree_rows
from placement.conf import database_url
from placement.db.sqlalchemy import migration, models

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
# In a database of an old release, a root provider may have no root id.
_ROOT_ID = sa.func.coalesce(_PROVIDERS.c.root_provider_id, _PROVIDERS.c.id)


def _pairs(table: sa.Table, column: str) -> sa.Select[Any]:
    return sa.select(table.c.id, table.c[column])


# The name of a step of the work -> its statement.
_STATEMENTS: dict[str, Any] = {
    'providers': tree_rows.columns(with_aggregates=True),
    'names': sa.select(_PROVIDERS.c.id, _PROVIDERS.c.name, models.generation(_PROVIDERS)),
    'classes': _pairs(models.resource_classes, 'name'),
    'traits': _pairs(models.traits, 'name'),
    'aggregates': _pairs(models.placement_aggregates, 'uuid'),
    'projects': _pairs(models.projects, 'external_id'),
    'consumers of trees': (
        sa.select(_ROOT_ID, sa.func.count(sa.distinct(_ALLOCATIONS.c.consumer_id)))
        .join_from(_ALLOCATIONS, _PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
        .group_by(_ROOT_ID)
    ),
    'consumers of projects': (
        sa.select(_CONSUMERS.c.project_id, sa.func.count()).group_by(_CONSUMERS.c.project_id)
    ),
    'usage of projects': (
        sa.select(
            _CONSUMERS.c.project_id,
            _ALLOCATIONS.c.resource_class_id,
            sa.func.sum(_ALLOCATIONS.c.used),
        )
        .join_from(_ALLOCATIONS, _CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
        .group_by(_CONSUMERS.c.project_id, _ALLOCATIONS.c.resource_class_id)
    ),
    'counts': sa.select(
        *(
            sa.select(sa.func.count()).select_from(table).scalar_subquery().label(table.name)
            for table in (_CONSUMERS, _ALLOCATIONS, models.projects, models.users)
        )
    ),
}


def cloud(conn: sa.Connection, progress: Progress) -> Cloud:
    """Return the contents of the database."""
    rows: dict[str, Any] = {}
    with progress('Reading', len(_STATEMENTS)) as advance:
        for name, statement in _STATEMENTS.items():
            rows[name] = conn.execute(statement).all()
            advance(1)
    traits = dict(map(tuple, rows['traits']))
    trait_ids = {name: id_ for id_, name in traits.items()}
    # An allocation can refer to a consumer whose project is missing.
    projects = dict(map(tuple, rows['projects']))
    return Cloud(
        providers=tree_rows.providers_of(rows['providers']),
        names={id_: name or '' for id_, name, _ in rows['names']},
        generations={id_: generation for id_, _, generation in rows['names']},
        classes=dict(map(tuple, rows['classes'])),
        traits=traits,
        aggregates=dict(map(tuple, rows['aggregates'])),
        sharing_trait=trait_ids.get(os_traits.MISC_SHARES_VIA_AGGREGATE),
        disabled_trait=trait_ids.get(os_traits.COMPUTE_STATUS_DISABLED),
        consumers=dict(map(tuple, rows['consumers of trees'])),
        projects=[
            ProjectUsage(_project(projects, project_id), class_id, int(used))
            for project_id, class_id, used in rows['usage of projects']
        ],
        project_consumers={
            _project(projects, project_id): count
            for project_id, count in rows['consumers of projects']
        },
        counts=rows['counts'][0]._asdict(),
    )


def _project(names: dict[int, str], project_id: int) -> str:
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
