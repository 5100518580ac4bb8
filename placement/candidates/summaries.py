"""Reads the data of the provider summaries.

Before microversion 1.29, the response has a summary for each provider from which a returned
candidate allocates resources. From microversion 1.29 on, it has a summary for all providers of the
trees of these providers. `render` builds the summaries from the data.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from placement.candidates import facts, model
from placement.candidates.names import Names


@dataclass(slots=True)
class FoundProviders:
    """The anchors that have a candidate, and the providers that their candidates can use.

    An anchor is a provider tree together with the sharing providers available to it.
    """

    # Root id -> anchor.

    anchors: dict[int, model.Anchor] = field(default_factory=dict)
    # Provider id -> provider, for all providers of these anchors.
    providers: dict[int, model.Provider] = field(default_factory=dict)

    def add(self, anchor: model.Anchor) -> bool:
        """Add an anchor that has a candidate.

        :returns: False if the anchor was added before
        """
        if anchor.root.id in self.anchors:
            return False
        self.anchors[anchor.root.id] = anchor
        for provider in anchor.providers:
            self.providers[provider.id] = provider
        return True


@dataclass(frozen=True, slots=True)
class Summaries:
    """The providers that have a summary, and the names of their resource classes and traits."""

    providers: Sequence[model.Provider]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The data for the summaries of all candidates that the search may still find."""

    # Root id -> all providers of its tree.
    trees: Mapping[int, Sequence[model.Provider]]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]


def read_ahead(conn: sa.Connection, names: Names, anchors: Iterable[model.Anchor]) -> ReadAhead:
    """Read the data for the summaries of all candidates of these anchors.

    The search calls this function before it closes the connection, if it continues without it.

    :param names: the names that the search has read so far
    """
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
    return ReadAhead(trees, *_names(conn, names, providers))


def read(
    conn: sa.Connection,
    names: Names,
    ahead: ReadAhead | None,
    found: FoundProviders,
    slots: Sequence[model.Slot],
    candidates: Iterable[model.Candidate],
    whole_trees: bool,
) -> Summaries:
    """Return the data of the summaries for the candidates of the response.

    :param conn: the connection; not used if `ahead` is not None
    :param names: the names that the search has read so far
    :param ahead: the result of `read_ahead`; None if the connection is still open
    :param found: the anchors and providers of all candidates
    :param slots: the slots of the query; a slot is a part that exactly one provider serves
    :param candidates: the candidates of the response
    :param whole_trees: whether all providers of a tree have a summary (microversion 1.29)
    """
    ids = _ids_with_resources(slots, candidates)
    if whole_trees:
        roots = {found.providers[id_].root_id for id_ in ids}
        providers = _trees(conn, ahead, found, roots)
    else:
        providers = [found.providers[id_] for id_ in ids]
    if ahead:
        return Summaries(providers, ahead.class_names, ahead.trait_names)
    return Summaries(providers, *_names(conn, names, providers))


def _ids_with_resources(
    slots: Sequence[model.Slot], candidates: Iterable[model.Candidate]
) -> Collection[int]:
    """Return the ids of the providers from which a candidate allocates, without duplicates."""
    if all(slot.amounts for slot in slots):
        return dict.fromkeys(id_ for _, binding in candidates for id_ in binding)
    numbers = [number for number, slot in enumerate(slots) if slot.amounts]
    return dict.fromkeys(binding[number] for _, binding in candidates for number in numbers)


def _trees(
    conn: sa.Connection, ahead: ReadAhead | None, found: FoundProviders, roots: set[int]
) -> list[model.Provider]:
    """Return all providers of the trees with these roots."""
    own_trees = [
        provider
        for root_id in roots
        if root_id in found.anchors
        for provider in found.anchors[root_id].tree
    ]
    # The other trees have no candidate, but candidates of `found` use their sharing providers.
    others = roots - found.anchors.keys()
    if ahead:
        return own_trees + [p for root_id in others for p in ahead.trees[root_id]]
    read = [provider for provider in found.providers.values() if provider.root_id in others]
    return own_trees + facts.trees(conn, others, read)


def _names(
    conn: sa.Connection, names: Names, providers: Iterable[model.Provider]
) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Return the names of all resource classes and of all traits of the providers.

    :returns: resource class id -> name, and trait id -> name
    """
    providers = list(providers)
    class_ids = frozenset().union(*[provider.inventories for provider in providers])
    trait_ids = frozenset().union(*{provider.traits for provider in providers})
    return names.read(conn, class_ids, trait_ids)
