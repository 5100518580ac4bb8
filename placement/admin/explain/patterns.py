"""Groups the anchors of a cloud that no condition of the query can distinguish.

A query can distinguish few of the hosts of a large cloud (see `provider_kinds`). Anchors that it
cannot distinguish have the same *pattern*. The search runs once for each pattern, with one of its
anchors as the example. Only this example is kept in memory.

The values that make up a pattern are interned: equal values are represented by the same integer.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from placement.admin.explain.provider_kinds import ProviderKinds
from placement.candidates import model

# Stands for the id of a parent that does not exist.
_NO_PARENT = -1


@dataclass(slots=True)
class Largest:
    """The largest value of several providers, and the ids of the providers that have it."""

    value: int = -1
    provider_ids: list[int] = field(default_factory=list)

    def add(self, value: int, provider_id: int) -> None:
        """Consider the value of one more provider."""
        if value > self.value:
            self.value, self.provider_ids = value, [provider_id]
        elif value == self.value:
            self.provider_ids.append(provider_id)

    def merge(self, other: 'Largest') -> None:
        """Consider the values of other providers."""
        if other.value > self.value:
            self.value, self.provider_ids = other.value, list(other.provider_ids)
        elif other.value == self.value:
            self.provider_ids += other.provider_ids


@dataclass(slots=True)
class ClassFacts:
    """The largest amounts of one resource class among the providers of a pattern."""

    free: Largest = field(default_factory=Largest)
    max_unit: Largest = field(default_factory=Largest)


@dataclass(slots=True)
class ProviderPattern:
    """Providers of one kind, whose roots are of one kind too.

    :ivar provider: one of the providers as an example, see `ProviderKinds.example`
    :ivar root: the root of this provider
    :ivar count: the number of these providers
    :ivar classes: requested resource class -> its largest amounts
    """

    provider: model.Provider
    root: model.Provider
    count: int = 0
    classes: defaultdict[int, ClassFacts] = field(default_factory=lambda: defaultdict(ClassFacts))


@dataclass(slots=True)
class AnchorPattern:
    """Anchors that no condition can distinguish.

    :ivar anchor: one of the anchors as an example, see `ProviderKinds.example`
    :ivar root_ids: the roots of all anchors with this pattern
    """

    anchor: model.Anchor
    root_ids: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of anchors with this pattern."""
        return len(self.root_ids)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """The sharing providers of an anchor.

    :ivar number: equal for sharing providers that no condition can distinguish
    """

    number: int
    examples: tuple[model.Provider, ...]


class Patterns:
    """The patterns of all anchors of a cloud, and of all providers of their trees."""

    def __init__(self, query: model.Query[int]) -> None:
        self.anchors: dict[tuple[Hashable, int], AnchorPattern] = {}
        self.providers: dict[tuple[int, int], ProviderPattern] = {}
        self._kinds = ProviderKinds(query)
        self._with_positions = bool(query.same_subtrees)
        self._numbers: dict[Hashable, int] = {}
        self._sharing: dict[tuple[int, ...], _Sharing] = {}
        # Provider id -> a sharing provider that is available to other trees. Each one has a pattern
        # of its own, in which it is the root: the aggregates of its root do not apply there.
        self.sharing: dict[int, ProviderPattern] = {}

    def add(self, anchors: Iterable[model.Anchor]) -> None:
        """Add the anchors of a page. Each anchor of the cloud must be added once."""
        for anchor in anchors:
            kinds = {provider.id: self._kinds.of(provider) for provider in anchor.tree}
            for provider in anchor.tree:
                self._count(provider, anchor.root, kinds)
            tree = self._tree(anchor, kinds) if len(kinds) > 1 else kinds[anchor.root.id]
            sharing = self._of_sharing(anchor.sharing_providers)
            pattern = self.anchors.get((tree, sharing.number))
            if pattern is None:
                pattern = AnchorPattern(self._example(anchor, kinds, sharing.examples))
                self.anchors[tree, sharing.number] = pattern
            pattern.root_ids.append(anchor.root.id)

    def _number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _count(
        self, provider: model.Provider, root: model.Provider, kinds: Mapping[int, int]
    ) -> None:
        kind, kind_of_root = kinds[provider.id], kinds[root.id]
        pattern = self.providers.get((kind, kind_of_root))
        if pattern is None:
            pattern = self.providers[kind, kind_of_root] = ProviderPattern(
                self._kinds.example(provider, kind), self._kinds.example(root, kind_of_root)
            )
        self._add(pattern, provider)

    def _add(self, pattern: ProviderPattern, provider: model.Provider) -> None:
        pattern.count += 1
        for class_id in self._kinds.classes:
            if inventory := provider.inventories.get(class_id):
                facts = pattern.classes[class_id]
                facts.free.add(max(0, int(inventory.capacity) - inventory.used), provider.id)
                facts.max_unit.add(inventory.max_unit, provider.id)

    def _tree(self, anchor: model.Anchor, kinds: Mapping[int, int]) -> Hashable:
        """Return a value that is equal for trees that no condition can distinguish."""
        if not self._with_positions:
            others = sorted(kinds[p.id] for p in anchor.tree if p is not anchor.root)
            return kinds[anchor.root.id], *others
        children = _children(anchor.tree)
        tops = [anchor.root, *children.get(_NO_PARENT, ())]
        forms = self._forms(tops, children, kinds)
        if len(forms) < len(anchor.tree):
            # In a damaged database, a provider may be its own ancestor.
            return 'cycle', anchor.root.id
        root, *others = (forms[top.id] for top in tops)
        return root, *sorted(others)

    def _forms(
        self,
        tops: Iterable[model.Provider],
        children: Mapping[int, Sequence[model.Provider]],
        kinds: Mapping[int, int],
    ) -> dict[int, int]:
        """Return the form of the subtree below each provider, by provider id.

        A form is a number that is equal for subtrees with equal providers in equal positions.
        """
        forms: dict[int, int] = {}
        stack = [(top, False) for top in tops]
        while stack:
            provider, visited = stack.pop()
            below = children.get(provider.id, ())
            if visited:
                parts = sorted(forms[child.id] for child in below)
                forms[provider.id] = self._number((kinds[provider.id], 'children', *parts))
            else:
                stack.append((provider, True))
                stack += [(child, False) for child in below]
        return forms

    def _of_sharing(self, providers: Sequence[model.Provider]) -> _Sharing:
        ids = tuple(provider.id for provider in providers)
        found = self._sharing.get(ids)
        if found is None:
            by_root: dict[int, list[model.Provider]] = defaultdict(list)
            for provider in providers:
                by_root[provider.root_id].append(provider)
            trees = sorted(self._sharing_tree(of_root) for of_root in by_root.values())
            examples = tuple(map(self._sharing_example, providers))
            found = self._sharing[ids] = _Sharing(self._number(('sharing', *trees)), examples)
        return found

    def _sharing_tree(self, providers: Sequence[model.Provider]) -> tuple[bool, tuple[int, ...]]:
        """Return a value that is equal for sharing providers that no condition can distinguish.

        With same_subtree, the positions of sharing providers in their tree matter. Then only the
        same providers have the same value, unless the root is the only sharing provider.

        :param providers: the sharing providers of one tree
        """
        if self._with_positions and any(provider.parent_id is not None for provider in providers):
            return True, tuple(provider.id for provider in providers)
        return False, tuple(sorted(map(self._kinds.of, providers)))

    def _sharing_example(self, provider: model.Provider) -> model.Provider:
        pattern = self.sharing.get(provider.id)
        if pattern is None:
            example = self._kinds.example(provider, self._kinds.of(provider))
            pattern = self.sharing[provider.id] = ProviderPattern(example, example)
            self._add(pattern, provider)
        return pattern.provider

    def _example(
        self,
        anchor: model.Anchor,
        kinds: Mapping[int, int],
        sharing_providers: tuple[model.Provider, ...],
    ) -> model.Anchor:
        tree = tuple(self._kinds.example(provider, kinds[provider.id]) for provider in anchor.tree)
        return anchor._replace(
            root=next(provider for provider in tree if provider.id == anchor.root.id),
            tree=tree,
            sharing_providers=sharing_providers,
        )


def _children(tree: Sequence[model.Provider]) -> dict[int, list[model.Provider]]:
    """Return the children of each provider, and those of `_NO_PARENT`.

    In a damaged database, the parent of a provider may not exist.
    """
    ids = {provider.id for provider in tree}
    children: dict[int, list[model.Provider]] = defaultdict(list)
    for provider in tree:
        if provider.parent_id is not None:
            parent = provider.parent_id if provider.parent_id in ids else _NO_PARENT
            children[parent].append(provider)
    return children
