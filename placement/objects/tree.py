"""Trees of providers, as plain data. Pure: no database, no HTTP."""

from collections.abc import Mapping


def subtree(provider_id: int, parents: Mapping[int, int | None]) -> frozenset[int]:
    """A provider and all its descendants.

    :param parents: the parent's id, or None, by provider id, of the whole tree
    """
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(child)
    found = {provider_id}
    pending = [provider_id]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return frozenset(found)
