"""Portable SQL functions for numbers, indexes and text.

Importing this module registers the compilers for each database system with SQLAlchemy. `json_sql`
has the functions for JSON.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import functions
from sqlalchemy.sql.compiler import SQLCompiler


class Remainder(functions.GenericFunction[int]):
    """The remainder of an integer division."""

    name = 'remainder'
    inherit_cache = True
    type = sa.Integer()


class Smallest(functions.GenericFunction[Any]):
    """The smallest of several values in one row."""

    name = 'smallest'
    inherit_cache = True


class Largest(functions.GenericFunction[Any]):
    """The largest of several values in one row."""

    name = 'largest'
    inherit_cache = True


class ExactFloat(functions.GenericFunction[float]):
    """A floating-point column in double precision, with the same value that drivers return."""

    name = 'exact_float'
    inherit_cache = True
    type = sa.Double()


class WithoutIndex(functions.GenericFunction[int]):
    """An integer column in a condition for which SQLite must not use an index.

    Unless an operator runs ANALYZE, SQLite has no statistics. SQLite then estimates that a
    condition on this column selects as few rows as a condition on the provider tree, and may use
    the wrong index.
    """

    name = 'without_index'
    inherit_cache = True
    type = sa.Integer()


class IsNull(functions.GenericFunction[bool]):
    """Whether an integer column is NULL, in a condition for which MySQL must not use an index.

    PERF: most providers have no parent. If a statement reads some of them in the order of their
    ids, from a given id on, MariaDB may use the index on the parent. It then reads all index
    entries before that id: 16 of 1,000,000 providers took 46 ms from id 300,000 on, and 0.1 ms
    without this index (MariaDB 10.11, 2026-11).
    """

    name = 'is_null'
    inherit_cache = True
    type = sa.Boolean()


class StoredText(functions.GenericFunction[str]):
    """A text column in a binary collation, so that several columns can be combined in a UNION.

    Tables that were created at different times can have different default collations. MySQL and
    MariaDB reject a UNION of columns with different collations.
    """

    name = 'stored_text'
    inherit_cache = True
    type = sa.String()


class CodePointOrder(functions.GenericFunction[Any]):
    """A text in ORDER BY, or in a comparison with another one: in the order of its code points.

    The collation of the column has no effect.
    """

    name = 'code_point_order'
    inherit_cache = True
    type = sa.LargeBinary()


class IsFolded(functions.GenericFunction[bool]):
    """Whether a text column contains only characters that `str.casefold` does not change.

    The function may return false for other texts that `str.casefold` does not change, for example
    for all texts with a character that is not ASCII.
    """

    name = 'is_folded'
    inherit_cache = True
    type = sa.Boolean()


# Matches each character that is not one of these: space to at sign (with the digits), underscore,
# a to z. The regular expressions of all database systems and GLOB of SQLite accept this pattern.
_NOT_FOLDED = '[^ -@_a-z]'

Element = functions.GenericFunction[Any]


@compiles(ExactFloat)
@compiles(WithoutIndex)
@compiles(StoredText)
def _unchanged(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(Remainder)
def _remainder(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # MariaDB does not support the operator % in its ORACLE mode.
    return f'mod({compiler.process(element.clauses, **kw)})'


@compiles(Remainder, 'sqlite')
def _remainder_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    dividend, divisor = (compiler.process(clause, **kw) for clause in element.clauses)
    return f'({dividend} % {divisor})'


@compiles(Smallest)
def _smallest(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'least({compiler.process(element.clauses, **kw)})'


@compiles(Smallest, 'sqlite')
def _smallest_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'min({compiler.process(element.clauses, **kw)})'


@compiles(Largest)
def _largest(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'greatest({compiler.process(element.clauses, **kw)})'


@compiles(Largest, 'sqlite')
def _largest_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'max({compiler.process(element.clauses, **kw)})'


@compiles(ExactFloat, 'mysql', 'mariadb')
def _exact_float_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # A FLOAT column has single precision: in an expression, the stored value 0.7 becomes
    # 0.699999988. Drivers return the value of the text form, 0.7, so this function converts the
    # column to text. To multiply a text, MariaDB converts the text to DECIMAL, but text + 0e0 is a
    # DOUBLE. The difference matters: 100 * 1.15 is 115 as DECIMAL, but 114.99999999999999 as DOUBLE
    # and in Python.
    return f'(CAST({compiler.process(element.clauses, **kw)} AS CHAR) + 0e0)'


@compiles(IsNull)
def _is_null(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'{compiler.process(element.clauses, **kw)} IS NULL'


@compiles(IsNull, 'mysql', 'mariadb')
def _is_null_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'{compiler.process(element.clauses, **kw)} + 0 IS NULL'


@compiles(WithoutIndex, 'sqlite')
def _without_index_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # See "Disqualifying WHERE clause terms using unary +" in
    # https://www.sqlite.org/optoverview.html
    return f'+{compiler.process(element.clauses, **kw)}'


@compiles(StoredText, 'mysql', 'mariadb')
def _stored_text_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'CONVERT({compiler.process(element.clauses, **kw)} USING utf8mb4) COLLATE utf8mb4_bin'


@compiles(CodePointOrder, 'mysql', 'mariadb')
def _code_point_order_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # The collation utf8mb4_bin ignores trailing blanks, so that "a" follows "a" with a tabulator.
    return f'CAST(CONVERT({compiler.process(element.clauses, **kw)} USING utf8mb4) AS BINARY)'


@compiles(CodePointOrder, 'postgresql')
def _code_point_order_postgresql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # The collation "C" would compare the bytes in the encoding of the database.
    return f"convert_to({compiler.process(element.clauses, **kw)}, 'UTF8')"


@compiles(CodePointOrder, 'sqlite')
def _code_point_order_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'{compiler.process(element.clauses, **kw)} COLLATE BINARY'


@compiles(IsFolded)
def _is_folded(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'({compiler.process(element.clauses, **kw)} COLLATE "C" !~ \'{_NOT_FOLDED}\')'


@compiles(IsFolded, 'mysql', 'mariadb')
def _is_folded_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({_stored_text_mysql(element, compiler, **kw)} NOT REGEXP '{_NOT_FOLDED}')"


@compiles(IsFolded, 'sqlite')
def _is_folded_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({compiler.process(element.clauses, **kw)} NOT GLOB '*{_NOT_FOLDED}*')"
