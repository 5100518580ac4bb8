"""Finds the provider trees that an operator names, and the consumers that use them."""

from collections.abc import Collection, Iterable, Mapping
import contextlib
from typing import Any

import sqlalchemy as sa

from placement import grammar
from placement.admin import tables
from placement.admin.failure import CannotProceedError
from placement.db.expressions import id_list
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ROOTS = _PROVIDERS.alias('root')
_ALLOCATIONS = models.allocations


def find_roots(conn: sa.Connection, given: Iterable[str]) -> dict[str, int | None]:
    """Return the id of the root of each named provider that exists; None if it has no root.

    :param given: names, and UUIDs in any form. If a provider has the UUID, another one with this
        name is not considered
    """
    uuids = {text: {text, _normalized(text)} for text in given}
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
    by_uuid: Mapping[str, int | None] = {row.uuid: row.id for row in rows}
    by_name: Mapping[str, int | None] = {row.name: row.id for row in rows}
    found = {text: by_name[text] for text in uuids if text in by_name}
    return found | {
        text: by_uuid[uuid] for text, forms in uuids.items() for uuid in forms & by_uuid.keys()
    }


def require_roots(conn: sa.Connection, given: Iterable[str]) -> list[int]:
    """Return the ids of the roots of named providers, without repetitions.

    :raises CannotProceedError: a provider does not exist or has no root
    """
    texts = list(given)
    found = find_roots(conn, texts)
    roots: dict[int, None] = {}
    for text in texts:
        shown = tables.printable(text)
        if text not in found:
            raise CannotProceedError(f"No resource provider has the name or the UUID '{shown}'.")
        root = found[text]
        if root is None:
            raise CannotProceedError(
                f"The resource provider '{shown}' has no root. Run `placement-manage audit --only "
                'root-missing,parent-cycle`.'
            )
        roots[root] = None
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
