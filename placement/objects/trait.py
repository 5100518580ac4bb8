"""Traits, and the traits of each resource provider."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
import datetime
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import exception, trail
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows

_TRAITS = models.traits
_LINKS = models.resource_provider_traits
_PROVIDERS = models.resource_providers
_COLUMNS = (_TRAITS.c.id, _TRAITS.c.name, _TRAITS.c.updated_at, _TRAITS.c.created_at)
_OF_PROVIDER = (
    provider_rows.with_generation(*_COLUMNS)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_TRAITS, _TRAITS.c.id == _LINKS.c.trait_id)
    .order_by(_TRAITS.c.name)
)
# The first part selects the requested traits that exist; the last four columns are NULL. The second
# part selects the current traits of the provider. If the provider exists, the second part has at
# least one row; the id of the trait is NULL if the provider has no traits.
_REQUESTED_AND_LINKED = sa.union_all(
    sa.select(
        *_COLUMNS,
        sa.null().label('provider_id'),
        sa.null().label('provider_uuid'),
        sa.null().label('provider_name'),
        sa.null().label('generation'),
    ).where(_TRAITS.c.name.in_(sa.bindparam('names', expanding=True))),
    sa.select(
        _LINKS.c.trait_id,
        _TRAITS.c.name,
        *(sa.null() for _ in _COLUMNS[2:]),
        _PROVIDERS.c.id,
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.name,
        models.generation(_PROVIDERS),
    )
    .select_from(_PROVIDERS)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == _PROVIDERS.c.id)
    .outerjoin(_TRAITS, _TRAITS.c.id == _LINKS.c.trait_id)
    .where(_PROVIDERS.c.uuid == sa.bindparam('uuid'), _PROVIDERS.c.root_provider_id.is_not(None)),
)
# PERF: building these statements for each request took longer than their execution (tools/perf,
# 2026-11).
_LINK = sa.insert(_LINKS)
_UNLINK = sa.delete(_LINKS).where(
    _LINKS.c.resource_provider_id == sa.bindparam('provider_id'),
    _LINKS.c.trait_id.in_(sa.bindparam('removed', expanding=True)),
)


@dataclass(frozen=True, slots=True)
class Trait:
    """A standard or custom trait."""

    name: str
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class _Provider:
    """A provider with the ids and names of its traits, all read at one time."""

    id: int
    uuid: str
    name: str
    generation: int
    traits: Mapping[int, str | None]


def _trait(row: Any) -> Trait:
    return Trait(row.name, row.updated_at, row.created_at)


def list_matching(
    names: Collection[str] | None = None,
    prefix: str | None = None,
    associated: bool | None = None,
) -> list[Trait]:
    """Return the traits that match all filters; a filter that is None is ignored.

    :param names: return only traits with these names; names that do not exist are ignored
    :param prefix: return only traits whose name starts with this text; letter case matters
    :param associated: True returns only traits that at least one provider has, and False only
        traits that no provider has
    """
    statement = sa.select(*_COLUMNS).order_by(_TRAITS.c.id)
    if names is not None:
        statement = statement.where(_TRAITS.c.name.in_(sorted(names)))
    if prefix is not None:
        # PostgreSQL rejects LIKE on a column with a nondeterministic collation.
        statement = statement.where(sa.func.substr(_TRAITS.c.name, 1, len(prefix)) == prefix)
    if associated is not None:
        linked = sa.exists().where(_LINKS.c.trait_id == _TRAITS.c.id)
        statement = statement.where(linked if associated else ~linked)
    rows = engine.read(lambda conn: conn.execute(statement).all())
    # The SQL conditions ignore letter case if the collation of the column does.
    return [
        _trait(row)
        for row in rows
        if (prefix is None or row.name.startswith(prefix)) and (names is None or row.name in names)
    ]


def get(name: str) -> Trait:
    """Return the trait with this name.

    :raises exception.TraitNotFound:
    """
    row = engine.read(lambda conn: _row(conn, name))
    if row is None or row.name != name:
        raise exception.TraitNotFound(name)
    return _trait(row)


def ensure(name: str) -> tuple[Trait, bool]:
    """Create a custom trait if it does not exist.

    :returns: the trait, and whether this call created it
    :raises exception.TraitExists: another trait exists whose name the database compares as equal
    """

    def work(conn: sa.Connection) -> tuple[Trait, bool]:
        row = _row(conn, name)
        if row is not None and row.name != name:
            raise exception.TraitExists(row.name)
        if row is not None:
            return _trait(row), False
        conn.execute(sa.insert(_TRAITS), {'name': name})
        return _trait(_row(conn, name)), True

    return engine.write(work)


def delete(name: str) -> None:
    """Delete a custom trait, if no provider has the trait.

    :raises exception.TraitNotFound:
    :raises exception.StandardTrait: the trait is not a custom trait
    :raises exception.TraitInUse: a provider has the trait
    """

    def work(conn: sa.Connection) -> None:
        row = conn.execute(
            sa.select(_TRAITS.c.id, _TRAITS.c.name).where(_TRAITS.c.name == name).with_for_update()
        ).first()
        if row is None or row.name != name:
            raise exception.TraitNotFound(name)
        if not os_traits.is_custom(name):
            raise exception.StandardTrait(name)
        link = sa.select(_LINKS.c.trait_id).where(_LINKS.c.trait_id == row.id).limit(1)
        if conn.execute(link).first() is not None:
            raise exception.TraitInUse(name)
        conn.execute(sa.delete(_TRAITS).where(_TRAITS.c.id == row.id))

    engine.write(work)


def list_by_provider(uuid: str) -> tuple[int, list[Trait]]:
    """Return a provider's generation and its traits.

    :raises exception.ResourceProviderNotFound:
    """
    current, rows = engine.read(
        lambda conn: provider_rows.read_with_generation(conn, _OF_PROVIDER, uuid)
    )
    return current, [Trait(*row[1:]) for row in rows]


def replace_on_provider(
    uuid: str, given_generation: int, names: Collection[str]
) -> tuple[int, list[Trait]]:
    """Replace all traits of a provider, and increment its generation if the set of traits changes.

    :param given_generation: the provider generation in the request
    :param names: the names of the new traits
    :returns: the provider generation after the change, and the new traits
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.UnknownTraits: lists all traits that do not exist
    """

    def work(conn: sa.Connection) -> tuple[list[Any], _Provider, int]:
        requested, provider = _read_requested_and_linked(conn, uuid, names)
        generation.check_provider(provider.uuid, given_generation, provider.generation)
        unknown = set(names) - {row.name for row in requested}
        if unknown:
            raise exception.UnknownTraits(unknown)
        new_generation = _set_links(conn, provider, {row.id for row in requested})
        return requested, provider, new_generation

    requested, provider, new_generation = engine.write(work)
    trail.log(_changes, provider, requested)
    return new_generation, [_trait(row) for row in requested]


def clear_on_provider(uuid: str) -> None:
    """Remove all traits from a provider, and increment its generation if it had any traits.

    :raises exception.ResourceProviderNotFound:
    """

    def work(conn: sa.Connection) -> _Provider:
        provider_rows.lock_one(conn, uuid)
        _, provider = _read_requested_and_linked(conn, uuid, [])
        _set_links(conn, provider, set())
        return provider

    trail.log(_changes, engine.write(work), [])


def _row(conn: sa.Connection, name: str) -> Any:
    return conn.execute(sa.select(*_COLUMNS).where(_TRAITS.c.name == name)).first()


def _read_requested_and_linked(
    conn: sa.Connection, uuid: str, names: Collection[str]
) -> tuple[list[Any], _Provider]:
    """Return the requested traits that exist, as rows ordered by name, and a provider.

    The statement does not lock the provider. Every change of its traits increments its generation.

    :raises exception.ResourceProviderNotFound:
    """
    parameters = {'uuid': uuid, 'names': sorted(set(names))}
    rows = conn.execute(_REQUESTED_AND_LINKED, parameters).all()
    linked = [row for row in rows if row.provider_id is not None]
    if not linked:
        raise exception.ResourceProviderNotFound(uuid)
    requested = sorted((row for row in rows if row.provider_id is None), key=lambda row: row.name)
    traits = {row.id: row.name for row in linked if row.id is not None}
    id_, stored_uuid, name, current = linked[0][len(_COLUMNS) :]
    return requested, _Provider(id_, stored_uuid, name, current, traits)


def _set_links(conn: sa.Connection, provider: _Provider, requested: set[int]) -> int:
    """Replace the traits of a provider, and return its generation after the change.

    :param requested: the ids of the new traits
    """
    removed = sorted(provider.traits.keys() - requested)
    added = sorted(requested - provider.traits.keys())
    if not removed and not added:
        return provider.generation
    # The increment locks the provider, and fails if its traits have changed since they were read.
    generation.increment_providers(conn, {provider.id: provider.generation})
    if removed:
        conn.execute(_UNLINK, {'provider_id': provider.id, 'removed': removed})
    if added:
        conn.execute(
            _LINK,
            [{'resource_provider_id': provider.id, 'trait_id': trait_id} for trait_id in added],
        )
    return provider.generation + 1


def _changes(provider: _Provider, requested: Collection[Any]) -> Iterator[str]:
    """Describe the new traits of a provider for the log.

    :param requested: the rows of the new traits
    """
    ids = {row.id for row in requested}
    added = [row.name for row in requested if row.id not in provider.traits]
    removed = [name for id_, name in provider.traits.items() if id_ not in ids and name is not None]
    return trail.links('traits', provider.uuid, provider.name, added, removed)
