"""Worlds as rows of a database."""

from collections.abc import Iterator
import contextlib
from unittest import mock

import sqlalchemy as sa

from placement.candidates import forecasts, names, rare
from placement.tests import worlds
from placement.tests.worlds import rows
from placement.tests.worlds.rows import database

__all__ = ['database', 'fill', 'rare_up_to']


def fill(conn: sa.Connection, world: worlds.World) -> None:
    rows.fill(conn, world, names=True)


@contextlib.contextmanager
def rare_up_to(providers: int) -> Iterator[None]:
    """Change the maximum number of providers that have a rare trait or are in a rare aggregate."""
    cached = (
        names._ids_of_names,
        names.selects,
        forecasts._rows_of_look_up,
        forecasts._plain_statement,
    )
    for function in cached:
        function.cache_clear()
    try:
        with mock.patch.object(rare, 'MAX_PROVIDERS', providers):
            yield
    finally:
        for function in cached:
            function.cache_clear()
