"""Groups providers into trees, in any database, including damaged ones."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses

from placement.admin.report.model import Cloud, Provider, Total, Totals, Tree, root_id
from placement.candidates import sharing


def of_cloud(cloud: Cloud) -> list[Tree]:
    """Return all trees, the fullest first; trees with the same fullness are sorted by name."""
    members: dict[int, list[Provider]] = defaultdict(list)
    by_id = {provider.id: provider for provider in cloud.providers}
    for provider in cloud.providers:
        members[root_id(provider, by_id)].append(provider)
    trees = [_tree(by_id[id_], of_root, cloud) for id_, of_root in members.items()]
    trees = _with_sharing_providers(trees, cloud)
    return sorted(trees, key=lambda tree: (-tree.fullness, cloud.names[tree.root.id]))


def _tree(root: Provider, members: Sequence[Provider], cloud: Cloud) -> Tree:
    ordered = list(_parents_first(root, members, cloud.names)) if len(members) > 1 else members
    positions = {provider.id: position for position, provider in enumerate(ordered)}
    disabled = cloud.disabled_trait in root.traits
    totals = _totals(ordered, disabled)
    return Tree(
        root=root,
        providers=ordered,
        parents=[
            # A provider whose parent is missing is displayed below the root.
            positions.get(provider.parent_id or root.id, 0) if position else -1
            for position, provider in enumerate(ordered)
        ],
        totals=totals,
        fullest=_fullest(totals, cloud),
        disabled=disabled,
    )


def _parents_first(
    root: Provider, members: Sequence[Provider], names: Mapping[int, str]
) -> Iterator[Provider]:
    """Yield the root and then its descendants: each provider directly follows its parent's subtree.

    Providers that are not descendants of the root, because a parent is missing or is part of a
    cycle, are displayed below the root.
    """
    by_id = {provider.id: provider for provider in members}
    children: dict[int | None, list[Provider]] = defaultdict(list)
    for provider in sorted(members, key=lambda one: names[one.id], reverse=True):
        children[provider.parent_id].append(provider)
    left = dict(by_id)
    waiting = [root] if root.id in by_id else []
    while left:
        if not waiting:
            waiting.append(next(iter(left.values())))
        provider = waiting.pop()
        if left.pop(provider.id, None) is not None:
            yield provider
            waiting += children[provider.id]


def _totals(providers: Iterable[Provider], disabled: bool) -> Totals:
    totals: Totals = {}
    for provider in providers:
        for class_id, inventory in provider.inventories.items():
            if class_id not in totals:
                totals[class_id] = Total()
            totals[class_id].add(inventory, disabled)
    return totals


def _fullest(totals: Totals, cloud: Cloud) -> int | None:
    """Return the class with the highest fullness; of several, the first one by name."""
    found = [
        (-fullness, cloud.class_name(class_id), class_id)
        for class_id, total in totals.items()
        if (fullness := total.fullness) is not None
    ]
    return min(found)[2] if found else None


def _with_sharing_providers(trees: Sequence[Tree], cloud: Cloud) -> list[Tree]:
    """Return the trees with the sharing providers that are available to them."""
    if cloud.sharing_trait is None:
        return list(trees)
    registry = sharing.SharingProviders(cloud.sharing_trait)
    registry.add_all(
        [
            provider
            for tree in trees
            # A search ignores providers without a valid root.
            if tree.root.id == tree.root.root_id and tree.root.parent_id is None
            for provider in tree.providers
        ]
    )
    return [
        dataclasses.replace(tree, sharing=registry.of_tree(tree.root.id, tree.providers))
        for tree in trees
    ]
