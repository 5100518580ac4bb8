"""SQL functions for numbers, indexes and texts, with the syntax of each engine.

SQLAlchemy compiles these constructs after this module has been imported. `json_sql` has the
functions for JSON.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import functions
from sqlalchemy.sql.compiler import SQLCompiler


class Remainder(functions.GenericFunction[int]):
    """The remainder of a division of integers."""

    name = 'remainder'
    inherit_cache = True
    type = sa.Integer()


class ExactFloat(functions.GenericFunction[float]):
    """A floating point column in double precision, as the number that drivers return."""

    name = 'exact_float'
    inherit_cache = True
    type = sa.Double()


class WithoutIndex(functions.GenericFunction[int]):
    """An integer column whose index SQLite does not use for a condition.

    Unless an operator runs ANALYZE, SQLite has no statistics, and estimates that a value of the
    column selects as few rows as the condition on a provider tree does.
    """

    name = 'without_index'
    inherit_cache = True
    type = sa.Integer()


class StoredText(functions.GenericFunction[str]):
    """A text column as it is stored, as a column of a SELECT in a UNION.

    Tables that were created at different times may have different default collations. MySQL and
    MariaDB reject a UNION of columns whose collations differ.
    """

    name = 'stored_text'
    inherit_cache = True
    type = sa.String()


Element = functions.GenericFunction[Any]


@compiles(ExactFloat)
@compiles(WithoutIndex)
@compiles(StoredText)
def _unchanged(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(Remainder)
def _remainder(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # MariaDB has no % in its ORACLE mode.
    return f'mod({compiler.process(element.clauses, **kw)})'


@compiles(Remainder, 'sqlite')
def _remainder_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    dividend, divisor = (compiler.process(clause, **kw) for clause in element.clauses)
    return f'({dividend} % {divisor})'


@compiles(ExactFloat, 'mysql', 'mariadb')
def _exact_float_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # A FLOAT has single precision: 0.7 is 0.699999988 in an expression. Drivers return the number
    # that its text represents. MariaDB multiplies a text as DECIMAL, but text + 0e0 as DOUBLE:
    # 100 * 1.15 is 115 as DECIMAL, and 114.99999999999999 as DOUBLE and in Python.
    return f'(CAST({compiler.process(element.clauses, **kw)} AS CHAR) + 0e0)'


@compiles(WithoutIndex, 'sqlite')
def _without_index_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # https://www.sqlite.org/optoverview.html, "Disqualifying WHERE clause terms using unary +"
    return f'+{compiler.process(element.clauses, **kw)}'


@compiles(StoredText, 'mysql', 'mariadb')
def _stored_text_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'CONVERT({compiler.process(element.clauses, **kw)} USING utf8mb4) COLLATE utf8mb4_bin'
