"""Traits, and the traits of each resource provider."""

from collections.abc import Collection
from dataclasses import dataclass
import datetime
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import exception
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_locks, provider_rows
from placement.objects.provider_locks import Locked

_TRAITS = models.traits
_LINKS = models.resource_provider_traits
_COLUMNS = (_TRAITS.c.id, _TRAITS.c.name, _TRAITS.c.updated_at, _TRAITS.c.created_at)
_OF_PROVIDER = (
    provider_rows.with_generation(*_COLUMNS)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_TRAITS, _TRAITS.c.id == _LINKS.c.trait_id)
    .order_by(_TRAITS.c.name)
)


@dataclass(frozen=True, slots=True)
class Trait:
    """A standard or custom trait."""

    name: str
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


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
    # The SQL condition ignores letter case if the collation of the column does.
    return [_trait(row) for row in rows if prefix is None or row.name.startswith(prefix)]


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

    def work(conn: sa.Connection) -> tuple[int, list[Trait]]:
        provider = provider_locks.lock_one(conn, uuid)
        generation.check_provider(provider.uuid, given_generation, provider.generation)
        rows = conn.execute(_requested_and_linked(names, provider.id)).all()
        requested = sorted((row for row in rows if row.name is not None), key=lambda row: row.name)
        unknown = set(names) - {row.name for row in requested}
        if unknown:
            raise exception.UnknownTraits(unknown)
        linked = {row.id for row in rows if row.name is None}
        new_generation = _set_links(conn, provider, linked, {row.id for row in requested})
        return new_generation, [_trait(row) for row in requested]

    return engine.write(work)


def clear_on_provider(uuid: str) -> None:
    """Remove all traits from a provider, and increment its generation if it had any traits.

    :raises exception.ResourceProviderNotFound:
    """

    def work(conn: sa.Connection) -> None:
        provider = provider_locks.lock_one(conn, uuid)
        linked = conn.execute(_requested_and_linked([], provider.id))
        _set_links(conn, provider, {row.id for row in linked}, set())

    engine.write(work)


def _row(conn: sa.Connection, name: str) -> Any:
    return conn.execute(sa.select(*_COLUMNS).where(_TRAITS.c.name == name)).first()


def _requested_and_linked(names: Collection[str], provider_id: int) -> sa.CompoundSelect[Any]:
    """Return a select of the requested traits that exist, and of the current traits of a provider.

    In rows of current traits, all columns except the id are NULL.
    """
    nulls = (sa.null() for _ in _COLUMNS[1:])
    return sa.union_all(
        sa.select(*_COLUMNS).where(_TRAITS.c.name.in_(sorted(set(names)))),
        sa.select(_LINKS.c.trait_id, *nulls).where(_LINKS.c.resource_provider_id == provider_id),
    )


def _set_links(conn: sa.Connection, provider: Locked, linked: set[int], requested: set[int]) -> int:
    """Replace the traits of a provider, and return its generation after the change.

    :param linked: the ids of the current traits
    :param requested: the ids of the new traits
    """
    removed, added = sorted(linked - requested), sorted(requested - linked)
    if not removed and not added:
        return provider.generation
    if removed:
        of_provider = _LINKS.c.resource_provider_id == provider.id
        conn.execute(sa.delete(_LINKS).where(of_provider, _LINKS.c.trait_id.in_(removed)))
    if added:
        conn.execute(
            sa.insert(_LINKS),
            [{'resource_provider_id': provider.id, 'trait_id': trait_id} for trait_id in added],
        )
    generation.increment_providers(conn, {provider.id: provider.generation})
    return provider.generation + 1
