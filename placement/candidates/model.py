"""The words of the search: what is asked for, what is there, and what is found.

Plain data, without behaviour beyond derived facts. A `Query` speaks of names, as the client
wrote them, or of ids, once `request.bind` looked them up; the rest of the package works with
ids alone. What is made for every row of the database is a named tuple, because those cost
the least; everything else is a frozen dataclass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar('Key', str, int)

# The root of a tree that does not exist.
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Group(Generic[Key]):
    """One request group. The group without suffix may be spread over several providers."""

    suffix: str
    amounts: tuple[tuple[Key, int], ...] = ()
    # One trait of each set is needed, and none of `forbidden`.
    required: tuple[frozenset[Key], ...] = ()
    forbidden: frozenset[Key] = frozenset()
    # Membership in one aggregate of each set is needed, and in none of `forbidden_aggregates`.
    member_of: tuple[frozenset[Key], ...] = ()
    forbidden_aggregates: frozenset[Key] = frozenset()
    # A provider of the tree to stay in; bound: its root, or NOWHERE when there is none.
    in_tree: Key | None = None


@dataclass(frozen=True, slots=True)
class Query(Generic[Key]):
    """All that is asked for."""

    groups: tuple[Group[Key], ...]
    isolate: bool = False
    root_required: frozenset[Key] = frozenset()
    root_forbidden: frozenset[Key] = frozenset()
    # Each is a set of suffixes.
    same_subtrees: tuple[frozenset[str], ...] = ()
    limit: int | None = None
    # Whether the client can place one workload on several providers of a tree.
    nested: bool = True

    @property
    def classes(self) -> frozenset[Key]:
        """The resource classes of all groups."""
        return frozenset(name for group in self.groups for name, _ in group.amounts)

    @property
    def traits(self) -> frozenset[Key]:
        """All traits that are named, wanted or not."""
        named = self.root_required | self.root_forbidden
        for group in self.groups:
            named = named.union(group.forbidden, *group.required)
        return named

    @property
    def aggregates(self) -> frozenset[Key]:
        """All aggregates that are named, wanted or not."""
        named: frozenset[Key] = frozenset()
        for group in self.groups:
            named = named.union(group.forbidden_aggregates, *group.member_of)
        return named

    @property
    def collective_traits(self) -> tuple[frozenset[Key], ...]:
        """The any-sets of traits that the providers of the group without suffix need together."""
        return next((group.required for group in self.groups if not group.suffix), ())

    @property
    def trees(self) -> frozenset[Key]:
        """All providers that an in_tree names."""
        return frozenset(group.in_tree for group in self.groups if group.in_tree is not None)


class Stock(NamedTuple):
    """An inventory record and what is taken from it."""

    class_id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        """What the record offers, truncated towards zero."""
        return int((self.total - self.reserved) * self.allocation_ratio)


class Provider(NamedTuple):
    """A resource provider as the database shows it."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None
    traits: frozenset[int]
    aggregates: frozenset[int]
    stock: Mapping[int, Stock]


class Anchor(NamedTuple):
    """A root that candidates are built around, and all that is in reach from it."""

    root: Provider
    tree: tuple[Provider, ...]
    # Sharing providers of other trees, linked to this one by an aggregate.
    lenders: tuple[Provider, ...] = ()
    # Other providers of the lenders' trees, where it matters who is below whom.
    kin: tuple[Provider, ...] = ()


class Slot(NamedTuple):
    """What one provider has to give: a suffixed group, or one class of the unsuffixed group."""

    group: Group[int]
    amounts: tuple[tuple[int, int], ...]

    @property
    def granular(self) -> bool:
        """Whether this is a suffixed group."""
        return bool(self.group.suffix)

    @property
    def conditions(self) -> tuple[object, ...]:
        """All that is asked for beside resources."""
        group = self.group
        return (
            self.granular,
            group.required,
            group.forbidden,
            group.member_of,
            group.forbidden_aggregates,
            group.in_tree,
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for slots that the same providers serve."""
        return self.amounts, self.conditions


# The ids of the providers that serve the slots of a query, in the order of the slots. Within
# one anchor two candidates are the same exactly when these are: the mapping of each suffix is
# one provider, and what is left of the amounts tells who serves which class of the group
# without suffix.
Chosen = tuple[int, ...]


class Candidate(NamedTuple):
    """One answer: who serves each slot, and the root that it was built around."""

    root_id: int
    chosen: Chosen


def slots_of(query: Query[int]) -> tuple[Slot, ...]:
    """Take a query apart into what single providers have to serve."""
    slots = []
    for group in query.groups:
        if group.suffix:
            slots.append(Slot(group, group.amounts))
        else:
            slots.extend(Slot(group, (item,)) for item in group.amounts)
    return tuple(slots)
