"""Finds the provider trees that an operator names, and the consumers that use them."""

from collections.abc import Collection, Iterable
import contextlib
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement import grammar
from placement.admin import console
from placement.admin.console import CannotProceedError
from placement.db.expressions import id_list
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ROOTS = _PROVIDERS.alias('root')
_ALLOCATIONS = models.allocations


class Named(NamedTuple):
    """A provider that an operator names; the id of its root is None if it has no root."""

    uuid: str
    root_id: int | None


def find(conn: sa.Connection, given: Iterable[str]) -> dict[str, Named]:
    """Return the named providers that exist.

    :param given: names, and UUIDs in any form. If a provider has the UUID, another one with this
        name is not considered
    """
    uuids = {text: (text, _normalized(text)) for text in given}
    # In a cycle of parents, the root of a provider has a parent.
    is_root = sa.and_(
        _ROOTS.c.id == _PROVIDERS.c.root_provider_id, _ROOTS.c.parent_provider_id.is_(None)
    )
    rows = conn.execute(
        sa.select(_PROVIDERS.c.uuid, _PROVIDERS.c.name, _ROOTS.c.id)
        .select_from(_PROVIDERS.outerjoin(_ROOTS, is_root))
        .where(
            sa.or_(
                _PROVIDERS.c.uuid.in_(sorted(set().union(*uuids.values()))),
                _PROVIDERS.c.name.in_(sorted(uuids)),
            )
        )
    ).all()
    by_uuid = {row.uuid: Named(row.uuid, row.id) for row in rows}
    by_name = {row.name: Named(row.uuid, row.id) for row in rows}
    found = {
        text: by_uuid.get(text) or by_uuid.get(uuid) or by_name.get(text)
        for text, (_, uuid) in uuids.items()
    }
    return {text: named for text, named in found.items() if named}


def require(conn: sa.Connection, given: Iterable[str]) -> dict[str, Named]:
    """Return the named providers.

    :raises CannotProceedError: a provider does not exist
    """
    texts = list(given)
    found = find(conn, texts)
    for text in texts:
        if text not in found:
            raise CannotProceedError(
                f"No resource provider has the name or the UUID '{console.printable(text)}'."
            )
    return found


def require_roots(conn: sa.Connection, given: Iterable[str]) -> list[int]:
    """Return the ids of the roots of named providers, without repetitions.

    :raises CannotProceedError: a provider does not exist or has no root
    """
    roots: dict[int, None] = {}
    for text, named in require(conn, given).items():
        if named.root_id is None:
            raise CannotProceedError(
                f"The resource provider '{console.printable(text)}' has no root. Run "
                '`placement-manage audit --only root-missing,parent-cycle`.'
            )
        roots[named.root_id] = None
    return list(roots)


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
