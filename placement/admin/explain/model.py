"""The result of `placement-manage explain`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trees:
    """The number of trees that have candidates.

    :ivar more: whether there are, or may be, more trees than `count`
    :ivar cut: whether the search reached the search limit before it was complete
    :ivar root_ids: the ids of the roots of these trees
    """

    count: int
    more: bool = False
    cut: bool = False
    root_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Most:
    """A largest amount, and the first provider by name that has it."""

    amount: int
    provider: str


@dataclass(frozen=True, slots=True)
class MostFree:
    """The largest free capacity and the largest max_unit of a resource class."""

    free: Most
    max_unit: Most


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A set of conditions without which the query has candidates.

    :ivar without: the keys of the conditions
    :ivar trees: the trees that have candidates then
    :ivar most_free: the key of a condition on an amount -> what the providers that satisfy the
        other conditions of its group have. A key is missing if there is no such provider
    """

    without: tuple[str, ...]
    trees: Trees
    most_free: Mapping[str, MostFree]


@dataclass(frozen=True, slots=True)
class GroupFunnel:
    """How many providers of the cloud remain after each check of a request group.

    :ivar suffix: the suffix of the group
    :ivar amounts: resource class -> requested amount. The unsuffixed group has a funnel for each
        class
    :ivar providers: name of the check -> the number of providers that remain, in the order of the
        checks
    """

    suffix: str
    amounts: Mapping[str, int]
    providers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RootFunnel:
    """How many roots remain after each check.

    :ivar total: all roots
    :ivar root_required: the roots that satisfy root_required
    :ivar served: those in whose reach every group has a provider that could serve it
    :ivar candidates: those with candidates
    :ivar by_condition: the key of each condition, and the roots in whose reach some provider
        satisfies it alone, and those before it
    """

    total: int
    root_required: int
    served: int
    candidates: Trees
    by_condition: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """Why a condition fails in a tree.

    :ivar key: the key of the condition
    :ivar text: the reason, with names and numbers
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class NearTree:
    """A tree, and the conditions that fail in it on their own."""

    name: str
    uuid: str
    failures: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a query has no candidates.

    :ivar candidates: the trees that have candidates for the query as it is
    :ivar hosts: the names of these trees, in order
    :ivar nested: below microversion 1.29, the trees that have candidates from 1.29 on; else None
    :ivar conditions: the keys of all conditions
    :ivar relaxations: the relaxations, and the sets whose search reached the search limit
    :ivar pairs_omitted: whether pairs of conditions were not judged, because the query has too many
        conditions
    :ivar nearest: the trees in which the fewest conditions fail, and more for comparison
    :ivar listed: the maximum number of nearest trees to list
    :ivar near: the number of trees in which as few conditions fail
    """

    query: str
    microversion: str
    candidates: Trees
    hosts: tuple[str, ...]
    nested: Trees | None
    conditions: tuple[str, ...]
    relaxations: tuple[Relaxation, ...]
    pairs_omitted: bool
    funnel: tuple[GroupFunnel, ...]
    roots: RootFunnel
    nearest: tuple[NearTree, ...]
    listed: int
    near: int
