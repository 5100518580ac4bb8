"""What export and import have in common: the session, counts of rows, and damaged databases."""

import sqlalchemy as sa

from placement.admin import audit
from placement.admin.console import CannotProceedError
from placement.admin.transfer.kinds import KINDS

# The findings of `placement-manage audit` about rows that a file cannot describe.
_DAMAGE = (
    'orphan-allocation',
    'orphan-provider',
    'unknown-class',
    'owner-missing',
    'root-missing',
    'parent-missing',
    'parent-cycle',
)
# The links that the audit does not check, and what they refer to.
_LINKS = (('provider_trait', 'trait'), ('provider_aggregate', 'aggregate'))


def prepare(conn: sa.Connection) -> None:
    """Set the session variables of the server that the statements need."""
    if conn.dialect.name == 'postgresql':
        # PERF: the statements read whole tables. If the statistics are old, for example after an
        # import that was rolled back, a nested loop takes minutes instead of a second
        # (10,000 hosts, 2026-11).
        conn.exec_driver_sql('SET LOCAL enable_nestloop = off')
    if conn.dialect.name == 'mysql':
        # While the reader of a pipe pauses, the server waits for this process.
        conn.exec_driver_sql('SET SESSION net_write_timeout = 31536000')


def counts(conn: sa.Connection) -> dict[str, int]:
    """Return the number of rows of each kind."""
    columns = (
        sa.select(sa.func.count()).select_from(kind.table).scalar_subquery().label(name)
        for name, kind in KINDS.items()
    )
    return dict(conn.execute(sa.select(*columns)).mappings().one())


def require_sound(conn: sa.Connection, remedy: str) -> None:
    """Check that no row refers to a missing row, and that the providers form trees.

    :param remedy: the sentence that follows the description of the rows
    :raises CannotProceedError: the message names the `audit` command that displays the rows
    """
    found = audit.findings(conn, _DAMAGE)
    if found:
        raise CannotProceedError(
            'The database has rows that refer to missing rows. `placement-manage audit --only '
            f'{",".join(one.code for one in found)}` lists them. {remedy}'
        )
    for name, target in _LINKS:
        column, ids = KINDS[name].fields[target].column, KINDS[target].table.c.id
        if conn.scalar(sa.select(sa.exists().where(column.not_in(sa.select(ids))))):
            raise CannotProceedError(
                f'The table {column.table.name} has a row whose {column.name} refers to no row. '
                f'{remedy}'
            )
