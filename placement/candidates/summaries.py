"""Which providers get a provider summary, and reading what their summaries show.

From microversion 1.29 on, these are all providers of every tree with a provider that a returned
candidate takes resources from. Before, they are only the providers that candidates take resources
from. `render` writes the summaries.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from placement.candidates import facts, model


@dataclass(slots=True)
class FoundProviders:
    """The anchors with candidates, and the providers that their candidates may use."""

    anchors: dict[int, model.Anchor] = field(default_factory=dict)
    providers: dict[int, model.Provider] = field(default_factory=dict)

    def add(self, anchor: model.Anchor) -> bool:
        """Add an anchor that has a candidate; return False if it was added before."""
        if anchor.root.id in self.anchors:
            return False
        self.anchors[anchor.root.id] = anchor
        for provider in anchor.providers:
            self.providers[provider.id] = provider
        return True


@dataclass(frozen=True, slots=True)
class Summaries:
    """The providers with a summary, and the names of their classes and traits."""

    providers: Sequence[model.Provider]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """Everything that summaries of some anchors can show."""

    # Root -> all providers of its tree.
    trees: Mapping[int, Sequence[model.Provider]]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]


def read_ahead(conn: sa.Connection, anchors: Iterable[model.Anchor]) -> ReadAhead:
    """Read everything that summaries of these anchors can show, before the connection is closed."""
    anchors = list(anchors)
    trees = {anchor.root.id: list(anchor.tree) for anchor in anchors}
    sharing = {
        provider.id: provider
        for anchor in anchors
        for provider in anchor.sharing_providers
        if provider.root_id not in trees
    }
    roots = {provider.root_id for provider in sharing.values()}
    for provider in facts.trees(conn, roots, read=sharing.values()):
        trees.setdefault(provider.root_id, []).append(provider)
    providers = [provider for tree in trees.values() for provider in tree]
    return ReadAhead(trees, *_names(conn, providers))


def read(
    conn: sa.Connection,
    ahead: ReadAhead | None,
    found: FoundProviders,
    slots: Sequence[model.Slot],
    candidates: Iterable[model.Candidate],
    whole_trees: bool,
) -> Summaries:
    """Return the summaries for the returned candidates.

    :param conn: not used if there is `ahead`
    :param ahead: the result of `read_ahead` for the anchors of all candidates
    :param found: the anchors and providers of all candidates
    :param whole_trees: whether there is a summary for each provider of a tree
    """
    ids = _ids_with_resources(slots, candidates)
    if whole_trees:
        roots = {found.providers[id_].root_id for id_ in ids}
        providers = _trees(conn, ahead, found, roots)
    else:
        providers = [found.providers[id_] for id_ in ids]
    if ahead:
        return Summaries(providers, ahead.class_names, ahead.trait_names)
    return Summaries(providers, *_names(conn, providers))


def _ids_with_resources(
    slots: Sequence[model.Slot], candidates: Iterable[model.Candidate]
) -> Collection[int]:
    """Return the ids of the providers that candidates take resources from, each once."""
    if all(slot.amounts for slot in slots):
        return dict.fromkeys(id_ for _, binding in candidates for id_ in binding)
    numbers = [number for number, slot in enumerate(slots) if slot.amounts]
    return dict.fromkeys(binding[number] for _, binding in candidates for number in numbers)


def _trees(
    conn: sa.Connection, ahead: ReadAhead | None, found: FoundProviders, roots: set[int]
) -> list[model.Provider]:
    """Return all providers of the trees of these roots."""
    own_trees = [
        provider
        for root_id in roots
        if root_id in found.anchors
        for provider in found.anchors[root_id].tree
    ]
    # The other trees are those of sharing providers.
    others = roots - found.anchors.keys()
    if ahead:
        return own_trees + [p for root_id in others for p in ahead.trees[root_id]]
    read = [provider for provider in found.providers.values() if provider.root_id in others]
    return own_trees + facts.trees(conn, others, read)


def _names(
    conn: sa.Connection, providers: Iterable[model.Provider]
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of all classes and traits of some providers, by id."""
    providers = list(providers)
    class_ids = {class_id for provider in providers for class_id in provider.inventories}
    trait_ids = frozenset().union(*{provider.traits for provider in providers})
    return facts.names(conn, class_ids, trait_ids)
