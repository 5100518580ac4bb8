"""Find wrong roots, missing parents and cycles in the links between providers.

The functions do not use the database.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """The links of a provider.

    :param parent_exists: whether the parent exists; false for a provider without a parent
    """

    id: int
    parent_id: int | None
    root_id: int | None
    parent_exists: bool


@dataclass(frozen=True, slots=True)
class WrongRoot:
    """A provider whose root is not the root of its parent.

    :param parent_id: the id of the parent, None if the provider is a root itself
    :param root_id: the stored root; None if it is NULL
    :param true_root_id: the id of the topmost ancestor
    """

    id: int
    parent_id: int | None
    root_id: int | None
    true_root_id: int


@dataclass(frozen=True, slots=True)
class Trees:
    """What is wrong with the trees.

    :param parent_missing: the ids of providers whose parent does not exist
    :param wrong_roots: the other providers with a wrong root, parents before their children
    :param cyclic: the ids of providers that are their own ancestors, with the ids of their parents
    """

    parent_missing: tuple[int, ...]
    wrong_roots: tuple[WrongRoot, ...]
    cyclic: Mapping[int, int]


def judge(links: Iterable[Link]) -> Trees:
    """Return what is wrong with the trees.

    A provider whose parent does not exist is regarded as a root. Its own root is not a separate
    finding, because the correction of the missing parent sets it. A provider in a cycle or below a
    cycle has no true root, so its root is not wrong.

    :param links: at least all providers with a parent, and all other providers whose root is not
        the provider itself
    """
    parents: dict[int, int | None] = {}
    roots: dict[int, int | None] = {}
    missing: list[int] = []
    for link in links:
        roots[link.id] = link.root_id
        parents[link.id] = link.parent_id if link.parent_exists else None
        if link.parent_id is not None and not link.parent_exists:
            missing.append(link.id)
    cyclic: dict[int, int] = {}
    wrong = [
        (depth, WrongRoot(id_, parents[id_], roots[id_], top))
        for id_, top, depth in _topmost(parents, cyclic)
        if roots[id_] != top
    ]
    wrong.sort(key=lambda pair: (pair[0], pair[1].id))
    without_parent = set(missing)
    return Trees(
        tuple(sorted(missing)),
        tuple(root for _, root in wrong if root.id not in without_parent),
        dict(sorted(cyclic.items())),
    )


def _topmost(
    parents: Mapping[int, int | None], cyclic: dict[int, int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the id, the topmost ancestor and the depth of each provider that has one.

    :param parents: the id of the parent, None for a topmost provider. Providers that are not in
        this mapping are topmost, too
    :param cyclic: receives the providers that are their own ancestors, with their parents
    """
    # Only providers with children are stored here.
    known: dict[int, tuple[int, int] | None] = {}
    for start in parents:
        path: dict[int, int] = {}
        node = start
        while node not in known and node not in path:
            parent = parents.get(node)
            if parent is None:
                break
            path[node] = parent
            node = parent
        if node in path:
            _add_cycle(path, node, cyclic)
            known.update(dict.fromkeys(path))
            continue
        top = known.get(node, (node, 0))
        if top is None:
            known.update(dict.fromkeys(path))
            continue
        yield start, top[0], top[1] + len(path)
        for distance, ancestor in enumerate(path):
            if ancestor != start:
                known[ancestor] = top[0], top[1] + len(path) - distance


def _add_cycle(path: Mapping[int, int], member: int, cyclic: dict[int, int]) -> None:
    node = member
    while node not in cyclic:
        cyclic[node] = path[node]
        node = path[node]


def root_corrections(
    wrong: Iterable[WrongRoot], current: Mapping[int, tuple[int | None, int | None]]
) -> dict[int, int]:
    """Return the roots to set, keyed by provider id, after the rows of the providers were locked.

    A root is corrected only if the provider still has the same parent, and this parent has the
    expected root, possibly after its own correction.

    :param wrong: the wrong roots before the locks, parents before their children
    :param current: the parent and root of each locked provider, keyed by provider id
    """
    roots: dict[int, int] = {}
    for one in wrong:
        if one.id not in current:
            continue
        parent_id, root_id = current[one.id]
        if parent_id != one.parent_id or root_id == one.true_root_id:
            continue
        if parent_id is None:
            roots[one.id] = one.id
        elif parent_id in current:
            root_of_parent = roots.get(parent_id, current[parent_id][1])
            if root_of_parent == one.true_root_id:
                roots[one.id] = one.true_root_id
    return roots
