"""Providers without a root, which no request returns and no command considers."""

import sqlalchemy as sa

from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ROOTS = _PROVIDERS.alias('root')
# All providers that the API does not list: of an old release without a root, or of a damaged
# database whose root does not exist.
COUNT = (
    sa.select(sa.func.count())
    .select_from(_PROVIDERS.outerjoin(_ROOTS, _ROOTS.c.id == _PROVIDERS.c.root_provider_id))
    .where(_ROOTS.c.id.is_(None))
)


def notice(count: int) -> str | None:
    """Return the sentence about providers that are missing from a result; None without one.

    :param count: the result of `COUNT`
    """
    if not count:
        return None
    return (
        f'The result lacks the resource providers without a root ({count}). Run `placement-manage '
        'audit --only root-missing`.'
    )
