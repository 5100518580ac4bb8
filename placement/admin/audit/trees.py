"""Find wrong roots and cycles in the links between providers. Nothing here uses the database."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Link(NamedTuple):
    """The parent and the root that a provider has.

    :ivar parent_exists: whether the parent exists; false for a provider without a parent
    """

    id: int
    parent_id: int | None
    root_id: int | None
    parent_exists: bool


class WrongRoot(NamedTuple):
    """A provider whose root is not the root of its parent.

    :ivar parent_id: the id of the parent, None if the provider is a root itself
    :ivar root_id: the stored root; None if it is NULL
    :ivar true_root_id: the id of the topmost ancestor
    """

    id: int
    parent_id: int | None
    root_id: int | None
    true_root_id: int


class Trees(NamedTuple):
    """What is wrong with the trees.

    :ivar wrong_roots: the providers with a wrong root, parents before their children
    :ivar cyclic: the ids of the providers that are their own ancestors, in order
    """

    wrong_roots: tuple[WrongRoot, ...]
    cyclic: tuple[int, ...]


def judge(links: Iterable[Link]) -> Trees:
    """Return what is wrong with the trees.

    A provider whose parent does not exist is regarded as a root. Its own root is not a wrong one,
    because the correction of the missing parent sets it. A provider in a cycle or below a cycle has
    no true root, so its root is not wrong.

    :param links: at least all providers with a parent, and all other providers whose root is not
        the provider itself
    """
    stored = {link.id: link for link in links}
    parents = {one.id: one.parent_id if one.parent_exists else None for one in stored.values()}
    children: defaultdict[int | None, list[int]] = defaultdict(list)
    for id_, parent_id in parents.items():
        children[parent_id].append(id_)
    sound_roots = children.keys() - parents.keys() - {None}
    true_roots = {id_: id_ for id_ in (*children[None], *sound_roots) if id_ is not None}
    wrong: list[WrongRoot] = []
    level = sorted(true_roots)
    while level:
        for id_ in level:
            link = stored.get(id_)
            # The root of a provider with a missing parent is not judged.
            if link and link.root_id != true_roots[id_] and link.parent_id == parents[id_]:
                wrong.append(WrongRoot(id_, link.parent_id, link.root_id, true_roots[id_]))
        below = [(child, id_) for id_ in level for child in children[id_]]
        true_roots |= {child: true_roots[id_] for child, id_ in below}
        level = sorted(child for child, _ in below)
    return Trees(tuple(wrong), _cyclic({i: p for i, p in parents.items() if i not in true_roots}))


def _cyclic(parents: Mapping[int, int | None]) -> tuple[int, ...]:
    """Return the ids of the providers in cycles.

    :param parents: the parents of the providers in and below cycles
    """
    cyclic = set(parents)
    while below := cyclic - {parents[id_] for id_ in cyclic}:
        cyclic -= below
    return tuple(sorted(cyclic))


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
