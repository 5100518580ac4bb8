"""Finds the provider trees that an operator names, and the consumers that use them."""

from collections.abc import Collection, Iterable, Mapping
import contextlib
from typing import Any, TypeVar

import sqlalchemy as sa

from placement import grammar
from placement.admin import console
from placement.admin.cloud import Cloud
from placement.admin.console import CannotProceedError
from placement.db.expressions import id_list
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
# A row, or a provider of a cloud.
_Provider = TypeVar('_Provider')


def find(conn: sa.Connection, given: Collection[str]) -> dict[str, Any]:
    """Return the rows of the named providers that exist, with the UUID and the name.

    :param given: names, and UUIDs in any form. If a provider has the UUID, another one with this
        name is not considered
    """
    uuids = {*given, *map(_normalized, given)}
    rows = conn.execute(
        sa.select(_PROVIDERS.c.uuid, _PROVIDERS.c.name).where(
            sa.or_(_PROVIDERS.c.uuid.in_(sorted(uuids)), _PROVIDERS.c.name.in_(sorted(given)))
        )
    )
    return _named(given, ((row.uuid, row.name, row) for row in rows))


def require(conn: sa.Connection, given: Collection[str]) -> dict[str, Any]:
    """Return the rows of the named providers, with the UUID and the name.

    :raises CannotProceedError: a provider does not exist
    """
    found = find(conn, given)
    _require_all(given, found)
    return found


def require_roots(found: Cloud, given: Collection[str]) -> list[int]:
    """Return the ids of the roots of named providers, without repetitions.

    :raises CannotProceedError: a provider does not exist or has no root
    """
    named = _named(given, ((one.uuid, found.names[one.id], one) for one in found.providers))
    _require_all(given, named)
    # In a cycle of parents, the root of a provider has a parent.
    roots = {one.id for one in found.providers if one.parent_id is None}
    for text, provider in named.items():
        if provider.root_id not in roots:
            raise CannotProceedError(
                f"The resource provider '{console.printable(text)}' has no root. Run "
                '`placement-manage audit --only root-missing,parent-cycle`.'
            )
    return list(dict.fromkeys(provider.root_id for provider in named.values()))


def _named(
    given: Iterable[str], providers: Iterable[tuple[str, str, _Provider]]
) -> dict[str, _Provider]:
    """Return the named providers that exist, of providers with UUIDs and names."""
    by_uuid, by_name = {}, {}
    for uuid, name, provider in providers:
        by_uuid[uuid] = by_name[name] = provider
    found = {
        text: by_uuid.get(text) or by_uuid.get(_normalized(text)) or by_name.get(text)
        for text in given
    }
    return {text: provider for text, provider in found.items() if provider}


def _require_all(given: Iterable[str], found: Mapping[str, object]) -> None:
    for text in given:
        if text not in found:
            raise CannotProceedError(
                f"No resource provider has the name or the UUID '{console.printable(text)}'."
            )


def _normalized(text: str) -> str:
    with contextlib.suppress(ValueError):
        return grammar.normalize_uuid(text)
    return text


def consumers_of_trees(root_ids: Collection[int]) -> sa.Select[Any]:
    """Return a SELECT of the UUIDs of the consumers with allocations from trees."""
    return (
        sa.select(_ALLOCATIONS.c.consumer_id)
        .join(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
        .where(_PROVIDERS.c.root_provider_id.in_(id_list(root_ids)))
    )
