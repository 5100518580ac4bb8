"""Find texts that are equal when letter case is ignored. The functions do not use the database."""

from collections.abc import Iterable


def groups(texts: Iterable[str], folded: frozenset[str]) -> list[tuple[str, ...]]:
    """Return the groups of texts that are equal when casefolded, sorted.

    :param texts: all texts of a column; no two of them are identical
    :param folded: the casefolded texts of interest
    """
    by_key: dict[str, list[str]] = {}
    for text in texts:
        key = text.casefold()
        if key in folded:
            by_key.setdefault(key, []).append(text)
    return sorted(tuple(sorted(group)) for group in by_key.values() if len(group) > 1)
