"""Traits: qualities of providers, and which provider has which."""

from collections.abc import Collection
from dataclasses import dataclass
import datetime
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import db_api, exception
from placement.db.sqlalchemy import models
from placement.objects import generation, resource_provider
from placement.objects.resource_provider import Locked

_TRAITS = models.traits
_LINKS = models.resource_provider_traits
_COLUMNS = (_TRAITS.c.id, _TRAITS.c.name, _TRAITS.c.updated_at, _TRAITS.c.created_at)
_OF_PROVIDER = (
    resource_provider.with_generation(*_COLUMNS)
    .outerjoin(_LINKS, _LINKS.c.resource_provider_id == resource_provider.ID)
    .outerjoin(_TRAITS, _TRAITS.c.id == _LINKS.c.trait_id)
    .order_by(_TRAITS.c.name)
)


@dataclass(frozen=True, slots=True)
class Trait:
    """A trait as clients see it."""

    name: str
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


def _trait(row: Any) -> Trait:
    return Trait(row.name, row.updated_at, row.created_at)


def find(
    names: Collection[str] | None = None,
    prefix: str | None = None,
    associated: bool | None = None,
) -> list[Trait]:
    """Traits, all or some.

    :param names: only these; names that do not exist are ignored
    :param prefix: only those whose name begins with this text, letter by letter
    :param associated: only those that some provider has (True), or none has (False)
    """
    statement = sa.select(*_COLUMNS).order_by(_TRAITS.c.id)
    if names is not None:
        statement = statement.where(_TRAITS.c.name.in_(sorted(names)))
    if prefix is not None:
        # Not LIKE, which PostgreSQL refuses for a nondeterministic collation.
        statement = statement.where(sa.func.substr(_TRAITS.c.name, 1, len(prefix)) == prefix)
    if associated is not None:
        linked = sa.exists().where(_LINKS.c.trait_id == _TRAITS.c.id)
        statement = statement.where(linked if associated else ~linked)
    with db_api.reader() as conn:
        rows = conn.execute(statement).all()
    # The collation may ignore letter case.
    return [_trait(row) for row in rows if prefix is None or row.name.startswith(prefix)]


def get(name: str) -> Trait:
    """One trait.

    :raises exception.TraitNotFound:
    """
    with db_api.reader() as conn:
        row = _row(conn, name)
    if row is None or row.name != name:
        raise exception.TraitNotFound(name)
    return _trait(row)


def ensure(name: str) -> tuple[Trait, bool]:
    """Create a custom trait unless it is there.

    :returns: the trait, and whether it was created
    :raises exception.TraitExists: the database compares the name of another trait as equal
    """

    def work(conn: sa.Connection) -> tuple[Trait, bool]:
        row = _row(conn, name)
        if row is not None and row.name != name:
            raise exception.TraitExists(row.name)
        if row is not None:
            return _trait(row), False
        conn.execute(sa.insert(_TRAITS), {'name': name})
        return _trait(_row(conn, name)), True

    return db_api.write(work)


def delete(name: str) -> None:
    """Delete a custom trait that no provider has.

    :raises exception.TraitNotFound:
    :raises exception.StandardTrait:
    :raises exception.TraitInUse:
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

    db_api.write(work)


def list_by_provider(uuid: str) -> tuple[int, list[Trait]]:
    """A provider's generation and its traits.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        seen, rows = resource_provider.read_with_generation(conn, _OF_PROVIDER, uuid)
    return seen, [Trait(*row[1:]) for row in rows]


def replace_on_provider(
    uuid: str, given_generation: int, names: Collection[str]
) -> tuple[int, list[Trait]]:
    """Make `names` all the traits that a provider has.

    :returns: the provider's generation, raised if the set changed, and its traits
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderGenerationConflict:
    :raises exception.UnknownTraits: naming all that do not exist
    """

    def work(conn: sa.Connection) -> tuple[int, list[Trait]]:
        provider = resource_provider.lock_one(conn, uuid)
        resource_provider.require_generation(provider, given_generation)
        rows = conn.execute(_wanted_and_linked(names, provider.id)).all()
        wanted = sorted((row for row in rows if row.name is not None), key=lambda row: row.name)
        unknown = set(names) - {row.name for row in wanted}
        if unknown:
            raise exception.UnknownTraits(unknown)
        linked = {row.id for row in rows if row.name is None}
        raised = _set_links(conn, provider, linked, {row.id for row in wanted})
        return raised, [_trait(row) for row in wanted]

    return db_api.write(work)


def clear_on_provider(uuid: str) -> None:
    """Take all traits from a provider; its generation rises if it had some.

    :raises exception.ResourceProviderNotFound:
    """

    def work(conn: sa.Connection) -> None:
        provider = resource_provider.lock_one(conn, uuid)
        linked = conn.execute(_wanted_and_linked([], provider.id))
        _set_links(conn, provider, {row.id for row in linked}, set())

    db_api.write(work)


def _row(conn: sa.Connection, name: str) -> Any:
    return conn.execute(sa.select(*_COLUMNS).where(_TRAITS.c.name == name)).first()


def _wanted_and_linked(names: Collection[str], provider_id: int) -> sa.CompoundSelect[Any]:
    """The traits of these names, then those that a provider has, which come without a name."""
    nothing = (sa.null() for _ in _COLUMNS[1:])
    return sa.union_all(
        sa.select(*_COLUMNS).where(_TRAITS.c.name.in_(sorted(set(names)))),
        sa.select(_LINKS.c.trait_id, *nothing).where(_LINKS.c.resource_provider_id == provider_id),
    )


def _set_links(conn: sa.Connection, provider: Locked, linked: set[int], wanted: set[int]) -> int:
    """Link a provider to just the wanted traits, and give its generation after that."""
    gone, new = sorted(linked - wanted), sorted(wanted - linked)
    if not gone and not new:
        return provider.generation
    if gone:
        here = _LINKS.c.resource_provider_id == provider.id
        conn.execute(sa.delete(_LINKS).where(here, _LINKS.c.trait_id.in_(gone)))
    if new:
        conn.execute(
            sa.insert(_LINKS),
            [{'resource_provider_id': provider.id, 'trait_id': trait_id} for trait_id in new],
        )
    generation.increment_providers(conn, {provider.id: provider.generation})
    return provider.generation + 1
