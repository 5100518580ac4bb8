"""Checks of consumers: their allocations, their owners, and the servers of Nova."""

import uuid

import os_traits
import sqlalchemy as sa

from placement.admin import names
from placement.admin.audit import model
from placement.claims import statements
from placement.db.sqlalchemy import models

# The command whose output `read_servers` reads.
LIST_SERVERS = 'openstack server list --all-projects --limit -1 -f json'

_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_PROJECTS = models.projects
_TYPES = models.consumer_types
_USERS = models.users
_PROVIDERS = models.resource_providers
_ROOTS = _PROVIDERS.alias('root')
_TRAITS = models.traits
_TRAIT_LINKS = models.resource_provider_traits
# The types of the consumers that Nova creates.
_INSTANCE, _MIGRATION = 'INSTANCE', 'MIGRATION'
# Servers with these states use no host.
_WITHOUT_HOST = frozenset({'BUILD', 'DELETED', 'SHELVED_OFFLOADED'})
_IS_IDLE = ~sa.exists().where(_ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)
_IDLE = sa.select(_CONSUMERS.c.uuid).where(_IS_IDLE).order_by(_CONSUMERS.c.uuid)
# All consumers, with the names of their project, user and type.
WITH_OWNERS = (
    sa.select(
        _CONSUMERS.c.uuid.label('consumer_uuid'),
        _PROJECTS.c.external_id.label('project'),
        _CONSUMERS.c.project_id,
        _USERS.c.external_id.label('user'),
        _CONSUMERS.c.user_id,
        _TYPES.c.name.label('consumer_type'),
        _CONSUMERS.c.consumer_type_id,
    )
    .select_from(_CONSUMERS)
    .outerjoin(_PROJECTS, _PROJECTS.c.id == _CONSUMERS.c.project_id)
    .outerjoin(_USERS, _USERS.c.id == _CONSUMERS.c.user_id)
    .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
    .order_by(_CONSUMERS.c.id)
)


def _delete(batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Delete the consumers that still have no allocations.

    Every request that adds allocations locks the consumer first, or increments its generation.
    """
    uuids = sorted(batch.keys)
    locked = [row.id for row in conn.execute(statements.LOCK_CONSUMERS, {'uuids': uuids})]
    idle = conn.scalars(sa.select(_CONSUMERS.c.id).where(_CONSUMERS.c.id.in_(locked), _IS_IDLE))
    return model.delete(conn, _CONSUMERS, WITH_OWNERS, model.have_keys(_CONSUMERS, idle.all()))


@model.finding(
    'idle-consumer',
    'consumers without allocations',
    correction=model.Correction(5, 'deletes the consumer', [(_IDLE, _delete)]),
)
def idle_consumer(audited: model.Audited) -> model.Found:
    return audited.rows(WITH_OWNERS.where(_IS_IDLE))


@model.finding(
    'incomplete-consumer',
    'consumers owned by the incomplete-consumer project',
    model.NOTICE,
    command='nova-manage placement heal_allocations --dry-run --verbose',
)
def incomplete_consumer(audited: model.Audited) -> model.Found:
    project = sa.select(_PROJECTS.c.id).where(_PROJECTS.c.external_id == audited.incomplete_project)
    return audited.rows(WITH_OWNERS.where(_CONSUMERS.c.project_id == project.scalar_subquery()))


@model.finding(model.OWNER_MISSING, 'consumers whose project, user or type does not exist')
def owner_missing(audited: model.Audited) -> model.Found:
    without_type = sa.and_(_CONSUMERS.c.consumer_type_id.is_not(None), _TYPES.c.id.is_(None))
    return audited.rows(
        WITH_OWNERS.where(sa.or_(_PROJECTS.c.id.is_(None), _USERS.c.id.is_(None), without_type))
    )


@model.finding(
    'several-trees',
    'instances with allocations of a class in several trees',
    model.NOTICE,
    command='openstack server migration list --server {consumer_uuid}',
)
def several_trees(audited: model.Audited) -> model.Found:
    """Sharing providers do not count.

    A consumer without a type is an instance, because Nova sets no types. A row contains the number
    of the trees, and the first and the last root by name.
    """
    is_sharing = sa.exists().where(
        _TRAIT_LINKS.c.resource_provider_id == _PROVIDERS.c.id,
        _TRAIT_LINKS.c.trait_id == _TRAITS.c.id,
        _TRAITS.c.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
    )
    trees = sa.func.count(_ROOTS.c.id.distinct())
    of_class = (
        sa.select(
            _ALLOCATIONS.c.consumer_id,
            trees.label('trees'),
            sa.func.min(_ROOTS.c.name).label('first_tree'),
            sa.func.max(_ROOTS.c.name).label('last_tree'),
        )
        .select_from(_ALLOCATIONS)
        .join(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
        .join(_ROOTS, _ROOTS.c.id == _PROVIDERS.c.root_provider_id)
        .where(~is_sharing)
        .group_by(_ALLOCATIONS.c.consumer_id, _ALLOCATIONS.c.resource_class_id)
        .having(trees > 1)
        .subquery()
    )
    found = (
        sa.select(
            of_class.c.consumer_id,
            sa.func.max(of_class.c.trees).label('trees'),
            sa.func.min(of_class.c.first_tree).label('first_tree'),
            sa.func.max(of_class.c.last_tree).label('last_tree'),
        )
        .group_by(of_class.c.consumer_id)
        .subquery()
    )
    first, last = _PROVIDERS.alias('first'), _PROVIDERS.alias('last')
    return audited.rows(
        WITH_OWNERS.join(found, found.c.consumer_id == _CONSUMERS.c.uuid)
        .outerjoin(first, first.c.name == found.c.first_tree)
        .outerjoin(last, last.c.name == found.c.last_tree)
        .where(sa.func.coalesce(_TYPES.c.name, _INSTANCE) == _INSTANCE)
        .add_columns(
            found.c.trees,
            found.c.first_tree,
            first.c.uuid.label('first_tree_uuid'),
            found.c.last_tree,
            last.c.uuid.label('last_tree_uuid'),
        )
    )


def read_servers(path: str) -> dict[str, model.Row]:
    """Return the servers in a file, keyed by the digits of the UUID (see `names.digits_of`).

    :raises CannotProceedError: the file cannot be read, or is not a list of servers
    """
    return {
        digits: {
            'server': row.get('Name'),
            'server_uuid': str(uuid.UUID(digits)),
            'status': row.get('Status'),
        }
        for digits, row in names.rows(path, f'Write it with `{LIST_SERVERS}`.')
    }


@model.finding(
    'no-server',
    'consumers that are neither a server nor a migration',
    model.NOTICE,
    command='openstack resource provider allocation show {consumer_uuid}',
    needs_servers=True,
)
def no_server(audited: model.Audited) -> model.Found:
    """Compare all consumers here, because no statement can have a million parameters."""
    others = sa.func.coalesce(_TYPES.c.name, '') != _MIGRATION
    uuids = audited.scalars(WITH_OWNERS.with_only_columns(_CONSUMERS.c.uuid).where(others))
    unknown = [text for text in uuids if names.digits_of(text) not in audited.servers]
    first = WITH_OWNERS.where(_CONSUMERS.c.uuid.in_(unknown[: audited.row_limit]))
    return model.Found(len(unknown), audited.rows(first).rows)


@model.finding(
    'no-allocations',
    'servers without allocations',
    model.NOTICE,
    command='nova-manage placement heal_allocations --verbose --instance {server_uuid}',
    needs_servers=True,
)
def no_allocations(audited: model.Audited) -> model.Found:
    without = dict(audited.servers)
    for text in audited.scalars(sa.select(_ALLOCATIONS.c.consumer_id).distinct()):
        without.pop(names.digits_of(text), None)
    using = [row for row in without.values() if row['status'] not in _WITHOUT_HOST]
    return model.Found(len(using), tuple(using[: audited.row_limit]))
