"""The data of a search: the query, the providers of a page, and the candidates.

Plain data, without behaviour beyond derived values. A `Query` has names, as the client wrote
them, or ids, once `request.bind` has replaced the names; all other modules use ids.

PERF: types that are created for each row or each candidate are named tuples. A frozen dataclass
with slots takes three times as long to create (CPython 3.11, 2026-11). Everything else is a frozen
dataclass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from placement.capacity import capacity_of

Key = TypeVar('Key', str, int)

# The root id that stands for an in_tree provider that does not exist.
NO_SUCH_ROOT = -1


@dataclass(frozen=True, slots=True)
class Group(Generic[Key]):
    """One request group. Several providers may serve the unsuffixed group together."""

    suffix: str
    # Pairs (resource class, requested amount in units of the class).
    amounts: tuple[tuple[Key, int], ...] = ()
    # Any-sets of traits: at least one trait of each set is required.
    required: tuple[frozenset[Key], ...] = ()
    forbidden: frozenset[Key] = frozenset()
    # Any-sets of aggregates: membership in at least one aggregate of each set is required.
    member_of: tuple[frozenset[Key], ...] = ()
    forbidden_aggregates: frozenset[Key] = frozenset()
    # The uuid of a provider; in a bound query the id of its root, or NO_SUCH_ROOT.
    in_tree: Key | None = None


@dataclass(frozen=True, slots=True)
class Query(Generic[Key]):
    """All parameters of GET /allocation_candidates."""

    groups: tuple[Group[Key], ...]
    # group_policy=isolate: different suffixed groups use different providers.
    isolate: bool = False
    root_required: frozenset[Key] = frozenset()
    root_forbidden: frozenset[Key] = frozenset()
    # The set of suffixes of each same_subtree parameter.
    same_subtrees: tuple[frozenset[str], ...] = ()
    limit: int | None = None
    # Whether a candidate may use several providers of one tree (microversion 1.29).
    nested: bool = True

    @property
    def classes(self) -> frozenset[Key]:
        """The resource classes of all groups."""
        return frozenset(name for group in self.groups for name, _ in group.amounts)

    @property
    def traits(self) -> frozenset[Key]:
        """All required and forbidden traits."""
        traits = self.root_required | self.root_forbidden
        for group in self.groups:
            traits = traits.union(group.forbidden, *group.required)
        return traits

    @property
    def aggregates(self) -> frozenset[Key]:
        """All aggregates of member_of, required and forbidden."""
        aggregates: frozenset[Key] = frozenset()
        for group in self.groups:
            aggregates = aggregates.union(group.forbidden_aggregates, *group.member_of)
        return aggregates

    @property
    def collective_traits(self) -> tuple[frozenset[Key], ...]:
        """The any-sets of traits that the providers of the unsuffixed group satisfy together."""
        return next((group.required for group in self.groups if not group.suffix), ())

    @property
    def in_trees(self) -> frozenset[Key]:
        """The values of all in_tree parameters."""
        return frozenset(group.in_tree for group in self.groups if group.in_tree is not None)


class ProviderInventory(NamedTuple):
    """The inventory of one class of a provider, and its usage, in units of the class."""

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
        """The exact capacity in units of the resource class."""
        return capacity_of(self.total, self.reserved, self.allocation_ratio)


class Provider(NamedTuple):
    """A resource provider as it is stored."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None
    traits: frozenset[int]
    aggregates: frozenset[int]
    # Resource class id -> inventory.
    inventories: Mapping[int, ProviderInventory]


class Anchor(NamedTuple):
    """An anchor root, its tree, and the sharing providers of the tree's aggregates."""

    root: Provider
    tree: tuple[Provider, ...]
    # Sharing providers of other trees that have an aggregate in common with this tree.
    sharing_providers: tuple[Provider, ...] = ()
    # All providers of the sharing providers' trees. Read only for queries with same_subtree.
    sharing_trees: tuple[Provider, ...] = ()

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers that a candidate of this anchor may use."""
        return self.tree + self.sharing_providers


class Slot(NamedTuple):
    """The part of a query that exactly one provider serves.

    A suffixed group is one slot; each resource class of the unsuffixed group is one slot.
    """

    group: Group[int]
    amounts: tuple[tuple[int, int], ...]

    @property
    def suffixed(self) -> bool:
        """Whether the slot is a suffixed group."""
        return bool(self.group.suffix)

    @property
    def conditions(self) -> tuple[object, ...]:
        """The conditions on a provider other than its resources, for comparison with `==`."""
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
        """A value that is equal for slots with the same amounts and conditions."""
        return self.amounts, self.conditions


# The id of the provider that serves each slot, in the order of the slots. Two candidates of one
# anchor are equal if and only if their bindings are equal: the binding determines the mappings and
# the amounts of each provider.
Binding = tuple[int, ...]


class Candidate(NamedTuple):
    """One allocation candidate and the anchor root that it belongs to."""

    root_id: int
    binding: Binding


def slots_of(query: Query[int]) -> tuple[Slot, ...]:
    """Return the slots of a query, in the order of its groups and their amounts."""
    slots = []
    for group in query.groups:
        if group.suffix:
            slots.append(Slot(group, group.amounts))
        else:
            slots.extend(Slot(group, (item,)) for item in group.amounts)
    return tuple(slots)
