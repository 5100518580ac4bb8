"""Traits, and the traits of each resource provider."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
import datetime
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import exception, trail
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows
from placement.objects.provider_rows import WithRequested

_TRAITS = models.traits
_LINKS = models.resource_provider_traits
_COLUMNS = (_TRAITS.c.id, _TRAITS.c.name, _TRAITS.c.updated_at, _TRAITS.c.created_at)
_OF_PROVIDER = (
    provider_rows.with_generation(
        _LINKS.c.trait_id, _TRAITS.c.name, _TRAITS.c.updated_at, _TRAITS.c.created_at
    )
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_TRAITS, _TRAITS.c.id == _LINKS.c.trait_id)
)
_LIST = _OF_PROVIDER.order_by(_TRAITS.c.name)
_OF_PROVIDER_AND_REQUESTED = provider_rows.and_requested(
    _OF_PROVIDER, _TRAITS.c.name, _TRAITS.c.updated_at, _TRAITS.c.created_at
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
        Trait(*row[1:])
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
    return Trait(*row[1:])


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
            return Trait(*row[1:]), False
        conn.execute(sa.insert(_TRAITS), {'name': name})
        return Trait(*_row(conn, name)[1:]), True

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
    current, rows = engine.read(lambda conn: provider_rows.read_with_generation(conn, _LIST, uuid))
    return current, [Trait(*row[1:]) for row in rows if row[1] is not None]


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

    def work(conn: sa.Connection) -> WithRequested:
        provider = provider_rows.read_with_requested(conn, _OF_PROVIDER_AND_REQUESTED, uuid, names)
        generation.check_provider(provider.uuid, given_generation, provider.generation)
        unknown = set(names) - {row[1] for row in provider.requested}
        if unknown:
            raise exception.UnknownTraits(unknown)
        _set_links(conn, provider)
        return provider

    provider = engine.write(work)
    trail.log(_changes, provider)
    traits = sorted((Trait(*row[1:]) for row in provider.requested), key=lambda trait: trait.name)
    changed = bool(provider.added or provider.removed)
    return provider.generation + changed, traits


def clear_on_provider(uuid: str) -> None:
    """Remove all traits from a provider, and increment its generation if it had any traits.

    :raises exception.ResourceProviderNotFound:
    """

    def work(conn: sa.Connection) -> WithRequested:
        provider_rows.lock_one(conn, uuid)
        provider = provider_rows.read_with_requested(conn, _OF_PROVIDER_AND_REQUESTED, uuid, ())
        _set_links(conn, provider)
        return provider

    trail.log(_changes, engine.write(work))


def _row(conn: sa.Connection, name: str) -> Any:
    return conn.execute(sa.select(*_COLUMNS).where(_TRAITS.c.name == name)).first()


def _set_links(conn: sa.Connection, provider: WithRequested) -> None:
    """Replace the traits of a provider with the requested ones, and increment its generation."""
    added, removed = ([row[0] for row in rows] for rows in (provider.added, provider.removed))
    if not added and not removed:
        return
    # The increment locks the provider. It fails if the traits have changed since they were read,
    # because every change of the traits increments the generation.
    generation.increment_providers(conn, {provider.id: provider.generation})
    if removed:
        conn.execute(_UNLINK, {'provider_id': provider.id, 'removed': removed})
    if added:
        links = [{'resource_provider_id': provider.id, 'trait_id': id_} for id_ in sorted(added)]
        conn.execute(_LINK, links)


def _changes(provider: WithRequested) -> Iterator[str]:
    """Describe the new traits of a provider for the log."""
    added, removed = (
        [row[1] for row in rows if row[1]] for rows in (provider.added, provider.removed)
    )
    return trail.links('traits', provider.uuid, provider.name, added, removed)
