"""Reads the data of the provider summaries.

Before microversion 1.29, the response has a summary for each provider from which a returned
candidate allocates resources. From microversion 1.29 on, it has a summary for all providers of the
trees of these providers. `render` builds the summaries from the data.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from placement.candidates import model
from placement.candidates.names import Names

# Root id -> all providers of its tree.
Trees = Mapping[int, Sequence[model.Provider]]


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


def read_names(
    conn: sa.Connection, names: Names, anchors: Iterable[model.Anchor], sharing_trees: Trees
) -> bool:
    """Read the names for the summaries of all candidates of these anchors.

    The search calls this function before it closes the connection, if it continues without it.

    :param names: receives the names
    :param sharing_trees: the trees of all sharing providers that were read
    :returns: False if a name has not been read yet and the connection is closed
    """
    anchors = list(anchors)
    shared = {provider.root_id for anchor in anchors for provider in anchor.sharing_providers}
    trees = [*(anchor.tree for anchor in anchors), *(sharing_trees[root_id] for root_id in shared)]
    return _names(conn, names, [provider for tree in trees for provider in tree]) is not None


def read(
    conn: sa.Connection,
    names: Names,
    found: FoundProviders,
    sharing_trees: Trees,
    slots: Sequence[model.Slot],
    candidates: Iterable[model.Candidate],
    whole_trees: bool,
) -> Summaries | None:
    """Return the data of the summaries for the candidates of the response.

    :param conn: the connection; used only if a name has not been read yet
    :param names: the names that the search has read so far
    :param found: the anchors and providers of all candidates
    :param sharing_trees: the trees of all sharing providers that were read
    :param slots: the slots of the query; a slot is a part that exactly one provider serves
    :param candidates: the candidates of the response
    :param whole_trees: whether all providers of a tree have a summary (microversion 1.29)
    :returns: None if a name has not been read yet and the connection is closed
    """
    providers = [found.providers[id_] for id_ in _ids_with_resources(slots, candidates)]
    if whole_trees:
        # The tree of a sharing provider can have no candidate of its own.
        trees = (
            found.anchors[root_id].tree if root_id in found.anchors else sharing_trees[root_id]
            for root_id in {provider.root_id for provider in providers}
        )
        providers = [provider for tree in trees for provider in tree]
    found_names = _names(conn, names, providers)
    return found_names and Summaries(providers, *found_names)


def _ids_with_resources(
    slots: Sequence[model.Slot], candidates: Iterable[model.Candidate]
) -> Collection[int]:
    """Return the ids of the providers from which a candidate allocates, without duplicates."""
    if all(slot.amounts for slot in slots):
        return dict.fromkeys(id_ for _, binding in candidates for id_ in binding)
    numbers = [number for number, slot in enumerate(slots) if slot.amounts]
    return dict.fromkeys(binding[number] for _, binding in candidates for number in numbers)


def _names(
    conn: sa.Connection, names: Names, providers: Sequence[model.Provider]
) -> tuple[Mapping[int, str], Mapping[int, str]] | None:
    """Return the names of all resource classes and of all traits of the providers.

    :returns: resource class id -> name, and trait id -> name
    """
    class_ids = frozenset().union(*[provider.inventories for provider in providers])
    trait_ids = frozenset().union(*{provider.traits for provider in providers})
    return names.read(conn, class_ids, trait_ids)
