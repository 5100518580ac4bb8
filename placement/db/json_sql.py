"""SQL functions that render rows as JSON text, with the syntax of each engine.

SQLAlchemy compiles these constructs after this module has been imported. Statements use them to
return a row and its lists of related rows, such as traits and inventories, together.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import functions
from sqlalchemy.sql.compiler import SQLCompiler


class JsonArray(functions.GenericFunction[str]):
    """The arguments as the text of a JSON array."""

    name = 'json_array'
    inherit_cache = True
    type = sa.Text()


class JsonNumberArray(functions.GenericFunction[str]):
    """The arguments, numbers that are not NULL, as the text of a JSON array.

    PERF: faster than `JsonArray` on some engines; a long search spends half of its time here.
    """

    name = 'json_number_array'
    inherit_cache = True
    type = sa.Text()


class JsonNumber(functions.GenericFunction[str]):
    """A floating point column as an argument of `JsonNumberArray`, with all its digits."""

    name = 'json_number'
    inherit_cache = True
    type = sa.Text()


class JsonList(functions.GenericFunction[str]):
    """The aggregate of many rows, each a number or a JSON array, as the text of a JSON array.

    The order is undefined. Without rows, the result is NULL, or an empty array on SQLite.
    """

    name = 'json_list'
    inherit_cache = True
    type = sa.Text()


Element = functions.GenericFunction[Any]


@compiles(JsonArray, 'postgresql')
def _json_array_postgresql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'json_build_array({compiler.process(element.clauses, **kw)})'


@compiles(JsonNumberArray, 'postgresql', 'mysql', 'mariadb')
def _json_number_array(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f"concat('[', concat_ws(',', {compiler.process(element.clauses, **kw)}), ']')"


@compiles(JsonNumberArray, 'sqlite')
def _json_number_array_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'json_array({compiler.process(element.clauses, **kw)})'


@compiles(JsonNumber)
def _json_number(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(JsonNumber, 'mysql', 'mariadb')
def _json_number_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # A FLOAT has single precision. Its text is the number that was stored: 0.7. A conversion to
    # double precision adds digits: 0.699999988079071.
    return f'CAST({compiler.process(element.clauses, **kw)} AS CHAR)'


@compiles(JsonNumber, 'sqlite')
def _json_number_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # json_array() renders 15 digits of a REAL.
    value = compiler.process(element.clauses, **kw)
    all_digits = f"json(printf('%!.17g', {value}))"
    return f'CASE WHEN {value} = CAST({value} AS INTEGER) THEN {value} ELSE {all_digits} END'


@compiles(JsonList, 'postgresql')
def _json_list_postgresql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    # If an argument is NULL, the result of || is NULL; concat() would ignore the argument.
    return f"'[' || string_agg(CAST({compiler.process(element.clauses, **kw)} AS TEXT), ',') || ']'"


@compiles(JsonList, 'mysql', 'mariadb')
def _json_list_mysql(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f"concat('[', group_concat({compiler.process(element.clauses, **kw)}), ']')"


@compiles(JsonList, 'sqlite')
def _json_list_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f'json_group_array({compiler.process(element.clauses, **kw)})'
