"""Compute subtrees of provider trees, without access to the database."""

from collections.abc import Mapping


def subtree(provider_id: int, parents: Mapping[int, int | None]) -> frozenset[int]:
    """Return the ids of a provider and all its descendants.

    :param parents: the id of the parent of each provider in the tree (None for a root), keyed by
        provider id
    """
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(child)
    subtree_ids = {provider_id}
    pending = [provider_id]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in subtree_ids:
                subtree_ids.add(child)
                pending.append(child)
    return frozenset(subtree_ids)
