"""Checks that the account of the service has the privileges that it needs.

The checks try each privilege with the account instead of reading its grants, because roles and
patterns of names make grants hard to interpret.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import schema
from placement.admin.preflight.model import Verdict, failure, ok, skipped
from placement.db import failures
from placement.db.sqlalchemy import migration

_REQUIRED = ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
_GRANT = 'Grant SELECT, INSERT, UPDATE, and DELETE on all tables of the database to the user.'
_CLASSES = sa.table('pg_class', sa.column('oid'), sa.column('relname'), schema='pg_catalog')
_SEQUENCES = sa.table('pg_sequence', sa.column('seqrelid'), schema='pg_catalog')


def read(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the privileges on the tables and, if the schema is older, those for its migration."""
    state = schema.read(conn)
    verdicts = []
    if state.existing:
        missing = dict(_missing(conn, state.existing))
        if sequences := _denied_sequences(conn, state.existing):
            missing['USAGE'] = sequences
        verdicts.append(judge_tables(missing, len(state.existing)))
    if schema.is_older(state):
        verdicts.append(judge_migration(migration.missing_privileges(conn)))
    return verdicts or [skipped('There are no tables.')]


def _missing(conn: sa.Connection, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each privilege that is missing, with the names of the tables."""
    inspector = sa.inspect(conn)
    columns = {name: inspector.get_columns(name) for name in sorted(names)}
    tables = [
        sa.table(name, *(sa.column(column['name']) for column in listed))
        for name, listed in columns.items()
    ]
    for privilege in _REQUIRED:
        denied = [table.name for table in tables if _is_denied(conn, _attempt(privilege, table))]
        if denied:
            yield privilege, denied


def _attempt(privilege: str, table: sa.TableClause) -> sa.Executable:
    """Return a statement that needs one privilege on all columns and affects no row."""
    values = {column.name: sa.null() for column in table.c}
    match privilege:
        case 'INSERT':
            rows = sa.select(*(value.label(name) for name, value in values.items()))
            none = rows.where(sa.false())
            return sa.insert(table).from_select(list(values), none, include_defaults=False)
        case 'UPDATE':
            return sa.update(table).values(values).where(sa.false())
        case 'DELETE':
            return sa.delete(table).where(sa.false())
    return sa.select(table).where(sa.false())


def _is_denied(conn: sa.Connection, statement: sa.Executable) -> bool:
    """Execute a statement, roll it back, and return whether the server denies it."""
    try:
        conn.execute(statement)
    except Exception as error:
        if not failures.is_access_denied(error):
            raise
        return True
    finally:
        conn.rollback()
    return False


def _denied_sequences(conn: sa.Connection, tables: Collection[str]) -> list[str]:
    """Return the sequences that generate ids of new rows and that the account cannot use."""
    if conn.dialect.name != 'postgresql':
        return []
    query = (
        sa.select(_CLASSES.c.relname)
        .join(_SEQUENCES, _SEQUENCES.c.seqrelid == _CLASSES.c.oid)
        .where(
            _CLASSES.c.relname.in_([f'{name}_id_seq' for name in tables]),
            sa.func.pg_table_is_visible(_CLASSES.c.oid),
            sa.not_(sa.func.has_sequence_privilege(_SEQUENCES.c.seqrelid, 'USAGE, UPDATE')),
        )
    )
    return sorted(conn.scalars(query))


def judge_tables(missing: Mapping[str, Collection[str]], tables: int) -> Verdict:
    """Judge the privileges on the existing tables.

    :param missing: the names of the tables or sequences by privilege
    :param tables: the number of existing tables
    """
    if not missing:
        return ok(f'The user can read and write {tables} tables.')
    lists = [f'{privilege} on {", ".join(names)}' for privilege, names in missing.items()]
    remedy = _GRANT
    if 'USAGE' in missing:
        remedy = f'{remedy} Grant USAGE on all sequences.'
    return failure(f'The user lacks: {"; ".join(lists)}.', remedy)


def judge_migration(denied: Collection[str]) -> Verdict:
    """Judge the privileges that a migration of the schema needs."""
    if not denied:
        return ok('The user can migrate the schema.')
    return failure(
        f'The user cannot migrate the schema; it lacks: {", ".join(denied)}.',
        schema.GRANT,
    )
