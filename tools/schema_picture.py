"""The Graphviz source of the picture of the database schema."""

from collections.abc import Iterator

import sqlalchemy as sa

# The column that contains the values of another column, by the name of the column. The database
# does not declare most of these references as foreign keys.
_REFERENCES = {
    'aggregate_id': 'placement_aggregates.id',
    'consumer_id': 'consumers.uuid',
    'consumer_type_id': 'consumer_types.id',
    'parent_provider_id': 'resource_providers.id',
    'project_id': 'projects.id',
    'resource_class_id': 'resource_classes.id',
    'resource_provider_id': 'resource_providers.id',
    'root_provider_id': 'resource_providers.id',
    'trait_id': 'traits.id',
    'user_id': 'users.id',
}
_HEAD = """\
// The tables and columns of placement/db/sqlalchemy/models.py. Written by tools/pictures.py.
digraph schema {
  rankdir=LR nodesep=0.2 ranksep=0.5
  node [shape=none style=solid margin=0]
"""


def source(metadata: sa.MetaData) -> str:
    """Return the source for the tables of a schema.

    Columns that every table has, such as timestamps, are not drawn.
    """
    tables = sorted(metadata.tables.values(), key=lambda table: table.name)
    common = set.intersection(*(set(table.columns.keys()) for table in tables))
    lines = [_HEAD]
    for table in tables:
        drawn = [column for column in table.columns if column.name not in common]
        lines += [*_node(table, drawn), *_edges(drawn), '']
    return '\n'.join([*lines[:-1], '}', ''])


def _node(table: sa.Table, columns: list['sa.Column[object]']) -> Iterator[str]:
    yield f'  {table.name} [label=<<table border="0" cellborder="1" cellspacing="0" cellpadding="5"'
    yield '    color="#5b6b7b">'
    yield f'    <tr><td bgcolor="#dbe7f3"><b>&#160;{table.name}&#160;</b></td></tr>'
    unique = {
        constraint.columns.keys()[0]
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint) and len(constraint.columns) == 1
    }
    for column in columns:
        name = f'<u>{column.name}</u>' if column.primary_key else column.name
        mark = ' *' if column.name in unique else ''
        yield f'    <tr><td align="left" port="{column.name}">{name}{mark}&#160;</td></tr>'
    yield '  </table>>]'


def _edges(columns: list['sa.Column[object]']) -> Iterator[str]:
    for column in columns:
        declared = [key.target_fullname for key in column.foreign_keys]
        target = declared[0] if declared else _REFERENCES.get(column.name)
        if target is None:
            continue
        table, _, key = target.partition('.')
        style = '' if declared else ' [style=dashed]'
        # A reference to the same table is drawn to the right of the table.
        side = ':e' if table == column.table.name else ''
        yield f'  {column.table.name}:{column.name}{side} -> {table}:{key}{side}{style}'
