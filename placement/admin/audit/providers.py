"""Read the links between providers, and the names of providers with wrong links."""

from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import trees
from placement.admin.audit.model import PARENT_CYCLE, PARENT_MISSING, ROOT_MISSING, Found, Row
from placement.admin.audit.rows import PROVIDERS
from placement.db import expressions

CODES = frozenset({ROOT_MISSING, PARENT_MISSING, PARENT_CYCLE})

_PARENT = PROVIDERS.alias('parent')
# All providers except roots whose root is correct.
_LINKS = (
    sa.select(
        PROVIDERS.c.id,
        PROVIDERS.c.parent_provider_id,
        PROVIDERS.c.root_provider_id,
        _PARENT.c.id.is_not(None),
    )
    .outerjoin(_PARENT, _PARENT.c.id == PROVIDERS.c.parent_provider_id)
    .where(
        sa.or_(
            PROVIDERS.c.parent_provider_id.is_not(None),
            PROVIDERS.c.root_provider_id.is_(None),
            PROVIDERS.c.root_provider_id != PROVIDERS.c.id,
        )
    )
)
# The rows that a driver receives together.
_FETCHED = 10_000


def read_trees(conn: sa.Connection) -> trees.Trees:
    """Return what is wrong with the links between all providers."""
    rows = conn.execute(_LINKS, execution_options={'yield_per': _FETCHED})
    return trees.judge(trees.Link(row[0], row[1], row[2], bool(row[3])) for row in rows)


def read_findings(conn: sa.Connection, row_limit: int) -> dict[str, Found]:
    """Return what is wrong with the links between providers, keyed by code."""
    judged = read_trees(conn)
    missing, wrong = judged.parent_missing[:row_limit], judged.wrong_roots[:row_limit]
    cyclic = dict(list(judged.cyclic.items())[:row_limit])
    stored = _Stored(
        conn,
        {
            *missing,
            *cyclic,
            *cyclic.values(),
            *(id_ for one in wrong for id_ in (one.id, one.root_id, one.true_root_id) if id_),
        },
    )
    return {
        ROOT_MISSING: Found(
            len(judged.wrong_roots),
            tuple(
                {
                    **stored.named(one.id),
                    **stored.root(one.root_id),
                    'true_root_provider_uuid': stored.uuid(one.true_root_id),
                }
                for one in wrong
            ),
        ),
        PARENT_MISSING: Found(
            len(judged.parent_missing),
            tuple(
                {**stored.named(id_), 'parent_provider_id': stored.parent_id(id_)}
                for id_ in missing
            ),
        ),
        PARENT_CYCLE: Found(
            len(judged.cyclic),
            tuple(
                {**stored.named(id_), 'parent_provider_uuid': stored.uuid(parent)}
                for id_, parent in cyclic.items()
            ),
        ),
    }


class _Stored:
    """The names of some providers."""

    def __init__(self, conn: sa.Connection, ids: Collection[int]) -> None:
        self._rows = {row.id: row for row in read_names(conn, ids)}

    def named(self, id_: int) -> Row:
        row = self._rows[id_]
        return {'provider': row.name, 'provider_uuid': row.uuid}

    def root(self, id_: int | None) -> Row:
        if id_ is not None and id_ not in self._rows:
            return {'root_provider_id': id_}
        return {'root_provider_uuid': self.uuid(id_)}

    def uuid(self, id_: int | None) -> str | None:
        return None if id_ is None else str(self._rows[id_].uuid)

    def parent_id(self, id_: int) -> int:
        return int(self._rows[id_].parent_provider_id)


def read_names(conn: sa.Connection, ids: Collection[int]) -> Iterator[Any]:
    """Yield the id, UUID, name and parent of providers; ids that do not exist are omitted."""
    if not ids:
        return iter(())
    select = sa.select(
        PROVIDERS.c.id, PROVIDERS.c.uuid, PROVIDERS.c.name, PROVIDERS.c.parent_provider_id
    )
    return iter(conn.execute(select.where(PROVIDERS.c.id.in_(expressions.id_list(ids)))).all())
