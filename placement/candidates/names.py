"""The names of the resource classes and traits in a response.

A search finds ids, and needs the names of these ids at its end. Recent responses of this process
show which ids to expect. The search reads the names of the expected ids together with the ids of
the query, in the same snapshot, and usually needs no other statement at the end.

This module keeps ids between requests, but no names, because names can change.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa

from placement.candidates import name_statements

# PERF: reading an unexpected name costs a round trip; reading a name that is not needed costs 8
# microseconds (2026-11). Ids that only older responses contained are expected up to this number.
_MOST_FROM_OLDER_RESPONSES = 128
# If a response contains more ids, none are expected.
_MOST = 1_000

Ids = dict[str, frozenset[int]]

# Kind -> the ids to expect. The value is replaced as a whole, because threads share it.
_expected: Ids = {name_statements.CLASS: frozenset(), name_statements.TRAIT: frozenset()}


def expected() -> Ids:
    """Return the ids whose names the next response will probably contain, by their kind."""
    return _expected


class Names:
    """The names that one search has read."""

    def __init__(self) -> None:
        # Kind -> id -> name.
        self._names: dict[str, Mapping[int, str]] = {
            name_statements.CLASS: {},
            name_statements.TRAIT: {},
        }

    def add(self, kind: str, names: Mapping[int, str]) -> None:
        """Add names that were read together with the ids of the query.

        :param names: id -> name
        """
        self._names[kind] = names

    def read(
        self, conn: sa.Connection, class_ids: Iterable[int], trait_ids: Iterable[int]
    ) -> tuple[Mapping[int, str], Mapping[int, str]]:
        """Return the names of resource classes and of traits, each as a mapping from id to name.

        :param conn: used only if a name has not been read yet
        :returns: mappings that also contain the names of other ids
        """
        needed = {
            name_statements.CLASS: frozenset(class_ids),
            name_statements.TRAIT: frozenset(trait_ids),
        }
        missing = {kind: ids - self._names[kind].keys() for kind, ids in needed.items()}
        if any(missing.values()):
            rows: Iterable[Any] = conn.execute(*name_statements.names_of_ids(missing))
            for kind, text in rows:
                self._names[kind] = {**self._names[kind], **names_by_id(text or '[]')}
            _expect(needed)
        return self._names[name_statements.CLASS], self._names[name_statements.TRAIT]


def names_by_id(text: str) -> dict[int, str]:
    """Return the names in a row of `name_statements`, keyed by id.

    :param text: the JSON text of the row
    """
    return {id_: name for name, id_ in orjson.loads(text)}


def _expect(needed: Ids) -> None:
    """Expect the ids of a response that contained an unexpected id."""
    global _expected
    union = {kind: ids | _expected[kind] for kind, ids in needed.items()}
    if _count(union.values()) <= _MOST_FROM_OLDER_RESPONSES:
        _expected = union
    elif _count(needed.values()) <= _MOST:
        _expected = needed
    else:
        _expected = {kind: frozenset() for kind in needed}


def _count(sets: Iterable[Collection[int]]) -> int:
    return sum(map(len, sets))
