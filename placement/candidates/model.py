"""The data of a search: the query, the providers of a page, and the candidates.

Terms of this package:

* An *anchor* is a provider tree together with the sharing providers available to it. The root
  provider of the tree is the anchor root.
* A *slot* is a part of the query that exactly one provider serves: a suffixed group, or one
  resource class of the unsuffixed group.
* An *eligible provider* of a slot could serve the slot if the query had no other slot.
* The *options* of a slot are the ids of the providers that the search tries for it.
* A *binding* assigns one provider to each slot. An allocation candidate is a binding that
  satisfies the whole query.
* An *any-set* is a set of traits or aggregates of which at least one is required.

A `Query` is created with names and UUIDs from the query string. `request.with_ids` replaces them
with database ids, and the search uses ids.

PERF: types with one instance for each row, slot or candidate are named tuples, because creating a
frozen dataclass with slots takes three times as long (CPython 3.11, 2026-11). All other types are
frozen dataclasses.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from placement import capacity

Key = TypeVar('Key', str, int)

# Used in place of the root id if the provider named by in_tree does not exist.
NO_SUCH_ROOT = -1


@dataclass(frozen=True, slots=True)
class Group(Generic[Key]):
    """One request group. The unsuffixed group may be served by several providers together."""

    suffix: str
    # (resource class, requested amount) pairs. Amounts are in units of the resource class.
    amounts: tuple[tuple[Key, int], ...] = ()
    # At least one trait of each set is required.
    required: tuple[frozenset[Key], ...] = ()
    forbidden: frozenset[Key] = frozenset()
    # Membership in at least one aggregate of each set is required.
    member_of: tuple[frozenset[Key], ...] = ()
    forbidden_aggregates: frozenset[Key] = frozenset()
    # The UUID of a provider. `request.with_ids` replaces it with the id of the provider's root, or
    # with NO_SUCH_ROOT.
    in_tree: Key | None = None


@dataclass(frozen=True, slots=True)
class Query(Generic[Key]):
    """All parameters of GET /allocation_candidates."""

    groups: tuple[Group[Key], ...]
    # group_policy=isolate: different suffixed groups use different providers.
    isolate: bool = False
    root_required: frozenset[Key] = frozenset()
    root_forbidden: frozenset[Key] = frozenset()
    # For each same_subtree parameter, the set of its suffixes.
    same_subtrees: tuple[frozenset[str], ...] = ()
    limit: int | None = None
    # Whether a candidate may use several providers of one tree. True from microversion 1.29 on.
    nested: bool = True
    # The requested traits and aggregates that few providers have; see `statements`. Set by
    # `request.with_ids`.
    rare_traits: frozenset[Key] = frozenset()
    rare_aggregates: frozenset[Key] = frozenset()

    @property
    def classes(self) -> frozenset[Key]:
        """The resource classes of all groups."""
        return frozenset(name for group in self.groups for name, _ in group.amounts)

    @property
    def traits(self) -> frozenset[Key]:
        """The required and forbidden traits of root_required and of all groups."""
        return self.root_required.union(
            self.root_forbidden,
            *(group.forbidden for group in self.groups),
            *(any_set for group in self.groups for any_set in group.required),
        )

    @property
    def aggregates(self) -> frozenset[Key]:
        """The required and forbidden aggregates of all groups."""
        return frozenset[Key]().union(
            *(group.forbidden_aggregates for group in self.groups),
            *(any_set for group in self.groups for any_set in group.member_of),
        )

    @property
    def collective_traits(self) -> tuple[frozenset[Key], ...]:
        """The any-sets of required traits of the unsuffixed group.

        The providers that serve the unsuffixed group must have these traits together, so no single
        provider needs all of them.
        """
        return next((group.required for group in self.groups if not group.suffix), ())

    @property
    def in_trees(self) -> frozenset[Key]:
        """The values of in_tree of all groups."""
        return frozenset(group.in_tree for group in self.groups if group.in_tree is not None)


class ProviderInventory(NamedTuple):
    """A provider's inventory and usage of one resource class, in units of that class."""

    class_id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> float:
        """The capacity in units of the resource class, not rounded."""
        return capacity.capacity_of(self.total, self.reserved, self.allocation_ratio)

    @property
    def free(self) -> int:
        """The largest amount that a consumer can allocate: free capacity, at most max_unit."""
        return min(capacity.free(self.used, self.capacity), self.max_unit)


class Provider(NamedTuple):
    """A resource provider with its stored traits, aggregates and inventories."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None
    traits: frozenset[int]
    aggregates: frozenset[int]
    # Resource class id -> inventory.
    inventories: Mapping[int, ProviderInventory]


class Anchor(NamedTuple):
    """A provider tree, its root, and the sharing providers that are available to it."""

    root: Provider
    tree: tuple[Provider, ...]
    # The sharing providers of other trees that are in an aggregate of a provider of this tree.
    sharing_providers: tuple[Provider, ...] = ()
    # All providers of the trees in which a sharing provider has a parent. Empty unless the query
    # has same_subtree.
    sharing_trees: tuple[Provider, ...] = ()

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers that a candidate of this anchor may use."""
        return self.tree + self.sharing_providers


class Slot(NamedTuple):
    """A part of the query that exactly one provider serves.

    A suffixed group is one slot. The unsuffixed group has one slot for each resource class.
    """

    group: Group[int]
    amounts: tuple[tuple[int, int], ...]

    @property
    def suffixed(self) -> bool:
        """Whether the slot is a suffixed group."""
        return bool(self.group.suffix)

    @property
    def conditions(self) -> tuple[object, ...]:
        """The conditions of the slot other than its amounts, for comparison with `==`."""
        group = self.group
        return (
            self.suffixed,
            group.required,
            group.forbidden,
            group.member_of,
            group.forbidden_aggregates,
            group.in_tree,
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """The amounts and conditions. Slots of the same kind have the same eligible providers."""
        return self.amounts, self.conditions


# Slot -> its options. Slots with the same options have the same tuple object.
SlotOptions = Sequence[tuple[int, ...]]
# (provider id, resource class id)
InventoryKey = tuple[int, int]
# For each slot, in the order of `slots_of`, the id of the provider that serves it. The binding
# determines the mappings of a candidate and the amounts that it allocates from each provider.
Binding = tuple[int, ...]


class Candidate(NamedTuple):
    """An allocation candidate: its binding, and the id of the anchor root."""

    root_id: int
    binding: Binding


def slots_of(query: Query[int]) -> tuple[Slot, ...]:
    """Return the slots of a query, sorted by suffix and resource class.

    So the search does not depend on the order in which the client writes the groups and classes.
    """
    slots = []
    for group in sorted(query.groups, key=lambda group: group.suffix):
        amounts = tuple(sorted(group.amounts))
        if group.suffix:
            slots.append(Slot(group, amounts))
        else:
            slots.extend(Slot(group, (item,)) for item in amounts)
    return tuple(slots)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query with the data that is the same for all anchors."""

    query: Query[int]
    slots: tuple[Slot, ...]
    # Slot -> an integer that identifies its kind. Slots of one kind have the same amounts and
    # conditions, and so the same eligible providers.
    kinds: tuple[int, ...]
    # Slot -> the sum of its amounts, each as a fraction of the amount that all slots request.
    sizes: tuple[float, ...]
    # group_policy=isolate: the slots that must be bound to different providers.
    isolated: frozenset[int]
    # Slot -> those of its (resource class id, amount) pairs for which it may have to share an
    # inventory with another slot.
    contended: tuple[tuple[tuple[int, int], ...], ...]
    # Whether a candidate may use at most one provider of each tree.
    one_per_tree: bool
    # For each same_subtree parameter, the set of its slots.
    subtrees: tuple[frozenset[int], ...]
    # Whether each combination of eligible providers is a candidate, because each slot requests a
    # different class, and there are no other conditions.
    independent: bool
    # Kind -> one slot of this kind. `unsuffixed` has one slot for each resource class of the
    # unsuffixed group, and `suffixed` has one for each distinct suffixed group.
    unsuffixed: Mapping[int, Slot]
    suffixed: Mapping[int, Slot]
    # The search steps that are counted for the checks of one provider.
    check_cost: int

    @classmethod
    def of(cls, query: Query[int], one_per_tree: bool = False) -> 'PreparedQuery':
        """Return the query with the data that is computed from it.

        :param one_per_tree: whether a candidate may use at most one provider of each tree
        """
        slots = slots_of(query)
        numbers: dict[tuple[object, ...], int] = {}
        kinds = tuple(numbers.setdefault(slot.kind, len(numbers)) for slot in slots)
        examples = dict(zip(kinds, slots, strict=True))
        totals: Counter[int] = Counter()
        isolated = {n for n, slot in enumerate(slots) if query.isolate and slot.suffixed}
        # Resource class id -> whether slots that request it are isolated.
        requests: dict[int, list[bool]] = defaultdict(list)
        for number, slot in enumerate(slots):
            for class_id, amount in slot.amounts:
                totals[class_id] += amount
                requests[class_id].append(number in isolated)
        # Two isolated slots never share an inventory.
        several = {id_ for id_, are in requests.items() if len(are) > 1 and not all(are)}
        return cls(
            query=query,
            slots=slots,
            kinds=kinds,
            sizes=tuple(sum(n / totals[id_] for id_, n in slot.amounts) for slot in slots),
            isolated=frozenset(isolated),
            contended=tuple(
                tuple([item for item in slot.amounts if item[0] in several]) for slot in slots
            ),
            one_per_tree=one_per_tree,
            subtrees=tuple(
                frozenset(n for n, slot in enumerate(slots) if slot.group.suffix in suffixes)
                for suffixes in query.same_subtrees
            ),
            independent=not (
                one_per_tree or query.collective_traits or any(slot.suffixed for slot in slots)
            ),
            unsuffixed={kind: slot for kind, slot in examples.items() if not slot.suffixed},
            suffixed={kind: slot for kind, slot in examples.items() if slot.suffixed},
            check_cost=1 + sum(map(_check_cost, examples.values())) // 4,
        )


def _check_cost(slot: Slot) -> int:
    return 2 + len(slot.amounts) + len(slot.group.required) + len(slot.group.member_of)
