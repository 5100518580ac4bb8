"""Describes database schemas so that they can be compared."""

from typing import Any

import sqlalchemy as sa

Description = dict[str, dict[str, Any]]


def describe(engine: sa.Engine) -> Description:
    """Return columns, keys, constraints and indexes of every table, in a stable order."""
    inspector = sa.inspect(engine)
    return {
        table: _describe_table(inspector, engine.dialect, table)
        for table in sorted(inspector.get_table_names())
    }


def _describe_table(inspector: sa.Inspector, dialect: sa.Dialect, table: str) -> dict[str, Any]:
    key = inspector.get_pk_constraint(table)
    unique = inspector.get_unique_constraints(table)
    indexes = inspector.get_indexes(table)
    return {
        'columns': {
            column['name']: {
                'type': column['type'].compile(dialect),
                'nullable': column['nullable'],
                'default': column['default'],
                'autoincrement': column.get('autoincrement'),
            }
            for column in inspector.get_columns(table)
        },
        'primary key': (key['name'], tuple(key['constrained_columns'])),
        'unique': sorted((c['name'], tuple(c['column_names'])) for c in unique),
        'indexes': sorted(
            (index['name'], tuple(index['column_names']), bool(index['unique']))
            for index in indexes
        ),
        'foreign keys': sorted(
            (
                foreign['name'] or '',
                tuple(foreign['constrained_columns']),
                foreign['referred_table'],
                tuple(foreign['referred_columns']),
                tuple(sorted(foreign['options'].items())),
            )
            for foreign in inspector.get_foreign_keys(table)
        ),
    }
