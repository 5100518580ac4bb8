"""Portable SQL functions: each has one template of SQL text for each database system.

With the functions for JSON, a single row of a result contains an object and the lists of its
related rows, for example a provider with its traits and inventories.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import functions
from sqlalchemy.sql.compiler import SQLCompiler

# The keys of the templates: MySQL and MariaDB, and each system that has no template of its own.
_MYSQL, _OTHERS = 'mysql', 'others'
# Matches each character that is not one of these: space to at sign (with the digits), underscore,
# a to z. The regular expressions of all database systems and GLOB of SQLite accept this pattern.
_NOT_FOLDED = '[^ -@_a-z]'


class _Function(functions.GenericFunction[Any]):
    """A function with a template of SQL text for each database system.

    :cvar templates: dialect -> template, with `{0}`, `{1}` and so on for single arguments, and
        `{all}` for all of them, separated by commas
    """

    templates: ClassVar[Mapping[str, str]]

    def __init_subclass__(cls) -> None:
        """Let SQLAlchemy cache the statements with this function."""
        cls.inherit_cache = True
        cls.name = cls.__name__.lower()
        super().__init_subclass__()


@compiles(_Function)
def _compile(element: _Function, compiler: SQLCompiler, **kw: Any) -> str:
    template = element.templates.get(compiler.dialect.name) or element.templates[_OTHERS]
    arguments = [compiler.process(clause, **kw) for clause in element.clauses]
    return template.format(*arguments, all=', '.join(arguments))


# Numbers and indexes ----------------------------------------------------------------


class Remainder(_Function):
    """The remainder of an integer division."""

    type = sa.Integer()
    # MariaDB does not support the operator % in its ORACLE mode.
    templates: ClassVar = {_OTHERS: 'mod({all})', 'sqlite': '({0} % {1})'}


class Smallest(_Function):
    """The smallest of several values in one row."""

    templates: ClassVar = {_OTHERS: 'least({all})', 'sqlite': 'min({all})'}


class Largest(_Function):
    """The largest of several values in one row."""

    templates: ClassVar = {_OTHERS: 'greatest({all})', 'sqlite': 'max({all})'}


class ExactFloat(_Function):
    """A floating-point column in double precision, with the same value that drivers return.

    A FLOAT column of MySQL has single precision: in an expression, the stored value 0.7 becomes
    0.699999988. Drivers return the value of the text form, 0.7, so this function converts the
    column to text. To multiply a text, MariaDB converts the text to DECIMAL, but text + 0e0 is a
    DOUBLE. The difference matters: 100 * 1.15 is 115 as DECIMAL, but 114.99999999999999 as DOUBLE
    and in Python.
    """

    type = sa.Double()
    templates: ClassVar = {_OTHERS: '{0}', _MYSQL: '(CAST({0} AS CHAR) + 0e0)'}


class WithoutIndex(_Function):
    """An integer column in a condition for which SQLite must not use an index.

    Unless an operator runs ANALYZE, SQLite has no statistics. SQLite then estimates that a
    condition on this column selects as few rows as a condition on the provider tree, and may use
    the wrong index. See "Disqualifying WHERE clause terms using unary +" in
    https://www.sqlite.org/optoverview.html
    """

    type = sa.Integer()
    templates: ClassVar = {_OTHERS: '{0}', 'sqlite': '+{0}'}


class IsNull(_Function):
    """Whether an integer column is NULL, in a condition for which MySQL must not use an index.

    PERF: most providers have no parent. If a statement reads some of them in the order of their
    ids, from a given id on, MariaDB may use the index on the parent. It then reads all index
    entries before that id: 16 of 1,000,000 providers took 46 ms from id 300,000 on, and 0.1 ms
    without this index (MariaDB 10.11, 2026-11).
    """

    type = sa.Boolean()
    templates: ClassVar = {_OTHERS: '{0} IS NULL', _MYSQL: '{0} + 0 IS NULL'}


# Text -------------------------------------------------------------------------------


class StoredText(_Function):
    """A text column in a binary collation, so that several columns can be combined in a UNION.

    Tables that were created at different times can have different default collations. MySQL and
    MariaDB reject a UNION of columns with different collations.
    """

    type = sa.String()
    templates: ClassVar = {
        _OTHERS: '{0}',
        _MYSQL: 'CONVERT({0} USING utf8mb4) COLLATE utf8mb4_bin',
    }


class CodePointOrder(_Function):
    """A text in ORDER BY, or in a comparison with another one: in the order of its code points.

    The collation of the column has no effect.
    """

    type = sa.LargeBinary()
    templates: ClassVar = {
        # The collation utf8mb4_bin ignores trailing blanks: "a" would follow "a" with a tabulator.
        _MYSQL: 'CAST(CONVERT({0} USING utf8mb4) AS BINARY)',
        # The collation "C" would compare the bytes in the encoding of the database.
        'postgresql': "convert_to({0}, 'UTF8')",
        'sqlite': '{0} COLLATE BINARY',
    }


class IsFolded(_Function):
    """Whether a text column contains only characters that `str.casefold` does not change.

    The function may return false for other texts that `str.casefold` does not change, for example
    for all texts with a character that is not ASCII.
    """

    type = sa.Boolean()
    templates: ClassVar = {
        _OTHERS: f'({{0}} COLLATE "C" !~ \'{_NOT_FOLDED}\')',
        _MYSQL: f"({StoredText.templates[_MYSQL]} NOT REGEXP '{_NOT_FOLDED}')",
        'sqlite': f"({{0}} NOT GLOB '*{_NOT_FOLDED}*')",
    }


# JSON -------------------------------------------------------------------------------


class JsonArray(_Function):
    """A JSON array of the arguments, as text."""

    type = sa.Text()
    templates: ClassVar = {_OTHERS: 'json_array({all})', 'postgresql': 'json_build_array({all})'}


class JsonNumberArray(_Function):
    """A JSON array of the arguments, as text; the arguments must be numbers and not NULL.

    PERF: with `JsonArray`, MariaDB takes 13.0 instead of 8.5 ms for the inventories of 1,000 hosts
    with three classes (MariaDB 10.11, 2026-11).
    """

    type = sa.Text()
    templates: ClassVar = {
        _OTHERS: "concat('[', concat_ws(',', {all}), ']')",
        'sqlite': 'json_array({all})',
    }


class JsonNumber(_Function):
    """A floating-point column with all its digits, for use as an argument of a JSON array."""

    type = sa.Text()
    templates: ClassVar = {
        _OTHERS: '{0}',
        # A FLOAT column has single precision. The conversion to text returns the number that the
        # client stored, for example 0.7. A conversion to double precision would return
        # 0.699999988079071.
        _MYSQL: 'CAST({0} AS CHAR)',
        # json_array() would render only 15 significant digits of a REAL.
        'sqlite': 'CASE WHEN {0} = CAST({0} AS INTEGER) THEN {0} '
        "ELSE json(printf('%!.17g', {0})) END",
    }


class JsonList(_Function):
    """An aggregate function: a JSON array of the argument in all rows, as text.

    The argument must be a number or a JSON array. The order of the elements is undefined. If there
    are no rows, the result is NULL, except on SQLite, where it is an empty array.
    """

    type = sa.Text()
    templates: ClassVar = {
        _MYSQL: "concat('[', group_concat({0}), ']')",
        # Without rows, string_agg() returns NULL. Then the result of || is NULL, too; concat()
        # would ignore the NULL and return an empty array.
        'postgresql': "'[' || string_agg(CAST({0} AS TEXT), ',') || ']'",
        'sqlite': 'json_group_array({0})',
    }


class ShortJson(_Function):
    """A JSON text of at most 500 characters, for use as an argument of `JsonList`.

    PERF: MariaDB aggregates longer texts in a temporary table on disk, which takes 70 microseconds
    longer for each list (MariaDB 10.11, 2026-11). It considers all JSON texts to be longer.
    """

    type = sa.Text()
    templates: ClassVar = {_OTHERS: '{0}', _MYSQL: 'CAST({0} AS CHAR(500))'}
