"""Rows of old releases whose generation is NULL."""

from typing import Any

from oslotest import base
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models

_CONSUMERS = models.consumers
_PERMIT = {
    'mysql': 'ALTER TABLE consumers MODIFY generation INT NULL DEFAULT 0',
    'postgresql': 'ALTER TABLE consumers ALTER COLUMN generation DROP NOT NULL',
}
_FORBID = {
    'mysql': 'ALTER TABLE consumers MODIFY generation INT NOT NULL DEFAULT 0',
    'postgresql': 'ALTER TABLE consumers ALTER COLUMN generation SET NOT NULL',
}
_PERMIT_SQLITE = (
    'PRAGMA writable_schema = ON',
    "UPDATE sqlite_master SET sql = REPLACE(sql, 'DEFAULT 0 NOT NULL', 'DEFAULT 0') "
    "WHERE name = 'consumers'",
    'PRAGMA writable_schema = RESET',
)


def permit_null(test: base.BaseTestCase) -> None:
    """Permit consumers without a generation until the end of a test, as old schemas did."""
    engine = db_api.get_placement_engine()
    name = engine.dialect.name
    with engine.begin() as conn:
        for statement in _PERMIT_SQLITE if name == 'sqlite' else (_PERMIT[name],):
            conn.exec_driver_sql(statement)
    if name != 'sqlite':
        test.addCleanup(_forbid_null, engine)


def _forbid_null(engine: sa.Engine) -> None:
    null = _CONSUMERS.c.generation.is_(None)
    with engine.begin() as conn:
        conn.execute(sa.update(_CONSUMERS).where(null).values(generation=0))
        conn.exec_driver_sql(_FORBID[engine.dialect.name])


def remove(**columns: Any) -> None:
    """Set the generation of all providers and consumers to NULL.

    :param columns: other columns of the providers to set, with their values
    """
    with db_api.get_placement_engine().begin() as conn:
        conn.execute(sa.update(models.resource_providers).values(generation=None, **columns))
        conn.execute(sa.update(_CONSUMERS).values(generation=None))
