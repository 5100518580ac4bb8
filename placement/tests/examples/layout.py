"""The layout of JSON documents in examples."""

import json
from typing import Any

_WIDTH = 100
_INDENT = 4
# A value with more levels of objects and arrays is never in one line.
_LEVELS_IN_A_LINE = 2


def pretty(document: Any) -> str:
    """Return a JSON document as text that ends with a newline.

    An object or an array with few levels is in one line if it fits. In an array, either all items
    are in one line each, or none. All other objects and arrays have one line for each member.
    """
    return _expanded(document, 0) + '\n'


def _expanded(value: Any, depth: int) -> str:
    """Return a value with one line for each member. The value begins in column `depth`."""
    if not isinstance(value, (dict, list)) or not value:
        return _flat(value)
    inner = depth + _INDENT
    if isinstance(value, dict):
        members = [(f'{_flat(key)}: ', member) for key, member in value.items()]
        in_line = [_fits(prefix, member, inner) for prefix, member in members]
        opening, closing = '{}'
    else:
        members = [('', member) for member in value]
        in_line = [all(_fits('', member, inner) for member in value)] * len(value)
        opening, closing = '[]'
    lines = ',\n'.join(
        ' ' * inner + prefix + (_flat(member) if flat else _expanded(member, inner))
        for (prefix, member), flat in zip(members, in_line, strict=True)
    )
    return f'{opening}\n{lines}\n{" " * depth}{closing}'


def _fits(prefix: str, value: Any, column: int) -> bool:
    if _levels(value) == 0:
        return True
    # A comma may follow the value.
    length = column + len(prefix) + len(_flat(value)) + 1
    return _levels(value) <= _LEVELS_IN_A_LINE and length <= _WIDTH


def _levels(value: Any) -> int:
    """Return the number of nested objects and arrays."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 0
    return 1 + max(map(_levels, value), default=0)


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
