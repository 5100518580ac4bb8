"""The data of a report: what `read` reads, and what `trees` and `totals` compute from it.

A *tree* is a root provider with all its descendants. The *fullness* of a resource class in a tree
is its usage divided by its capacity, both summed over the providers of the tree. The *fullest
class* of a tree is the one with the highest fullness. A tree is *disabled* if its root has the
trait COMPUTE_STATUS_DISABLED: Nova does not schedule to such a host.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
import datetime

from placement.admin.drain.report import Drain
from placement.candidates import model
from placement.capacity import capacity_of

# The classes, traits, and providers of this package are identified by their database ids.
Provider = model.Provider


@dataclass(frozen=True, slots=True)
class Origin:
    """From what the report was made.

    :ivar time: the time when the database was read, in UTC
    :ivar database: the URL of the database without a password
    :ivar schema: the revision of the schema
    :ivar version: the version of this software
    """

    time: datetime.datetime
    database: str
    schema: str
    version: str


@dataclass(frozen=True, slots=True)
class ProjectUsage:
    """The usage of one resource class by the consumers of a project."""

    project: str
    class_id: int
    used: int


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer with allocations in a tree.

    :ivar name: the UUID, after the name if it is known
    :ivar type: the consumer type; as in the API, `unknown` if it has none
    :ivar amounts: resource class id -> the amount that it uses in the tree
    """

    name: str
    type: str
    project: str
    amounts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Cloud:
    """The contents of the database.

    :ivar providers: all providers with traits, aggregates, inventories, and usage
    :ivar names: provider id -> name
    :ivar generations: provider id -> generation
    :ivar classes: resource class id -> name
    :ivar traits: trait id -> name
    :ivar aggregates: aggregate id -> UUID, after the name if it is known
    :ivar sharing_trait: the id of MISC_SHARES_VIA_AGGREGATE; None if the trait does not exist
    :ivar disabled_trait: the id of COMPUTE_STATUS_DISABLED; None if the trait does not exist
    :ivar consumers: root id -> the consumers with allocations in the tree
    :ivar projects: the usage of each project
    :ivar project_consumers: project -> the number of its consumers
    :ivar counts: the number of rows, by the name of what they are
    :ivar drains: UUID of a root -> whether its tree can be drained, for all trees with allocations;
        None if this was not computed
    """

    providers: Sequence[Provider]
    names: Mapping[int, str]
    generations: Mapping[int, int]
    classes: Mapping[int, str]
    traits: Mapping[int, str]
    aggregates: Mapping[int, str]
    sharing_trait: int | None
    disabled_trait: int | None = None
    consumers: Mapping[int, Sequence[Consumer]] = field(default_factory=dict)
    projects: Sequence[ProjectUsage] = ()
    project_consumers: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    drains: Mapping[str, Drain] | None = None

    def class_name(self, class_id: int) -> str:
        """Return the name of a resource class, which can be missing in a damaged database."""
        return self.classes.get(class_id, f'unknown class {class_id}')


def root_id(provider: Provider, existing: Container[int]) -> int:
    """Return the id of the root of a provider; its own id if the root is missing.

    :param existing: the ids of all providers
    """
    return provider.root_id if provider.root_id in existing else provider.id


@dataclass(slots=True)
class Total:
    """The sums of inventories of one resource class, in units of the class.

    :ivar inventories: the number of inventories
    :ivar capacity: negative if more is reserved than the total
    :ivar nominal: the capacity if nothing was reserved
    :ivar free: the amount that claims can use: an inventory whose usage exceeds its capacity, and
        an inventory of a disabled tree, count as 0
    """

    inventories: int = 0
    total: int = 0
    reserved: int = 0
    capacity: int = 0
    used: int = 0
    nominal: int = 0
    free: int = 0

    def add(self, inventory: model.ProviderInventory, disabled: bool) -> None:
        """Add an inventory.

        :param disabled: whether the tree of the inventory is disabled
        """
        self.inventories += 1
        self.total += inventory.total
        self.reserved += inventory.reserved
        self.capacity += capacity(inventory)
        self.used += inventory.used
        self.nominal += int(capacity_of(inventory.total, 0, inventory.allocation_ratio))
        if not disabled:
            self.free += max(0, capacity(inventory) - inventory.used)

    def include(self, other: 'Total') -> None:
        """Add the inventories of another sum."""
        self.inventories += other.inventories
        self.total += other.total
        self.reserved += other.reserved
        self.capacity += other.capacity
        self.used += other.used
        self.nominal += other.nominal
        self.free += other.free

    @property
    def fullness(self) -> float | None:
        """The usage divided by the capacity; None without capacity and usage."""
        if self.capacity > 0:
            return self.used / self.capacity
        return float('inf') if self.used or self.capacity else None


Totals = dict[int, Total]


@dataclass(frozen=True, slots=True)
class Tree:
    """A root provider with its descendants.

    :ivar root: in a damaged database, the root of providers can be in another tree
    :ivar providers: the root, and then its descendants; each provider follows its parent
    :ivar parents: for each provider, the position of its parent in `providers`; -1 for the root
    :ivar totals: resource class id -> the sums over the tree
    :ivar fullest: the id of the fullest class; None if no class has capacity or usage
    :ivar disabled: whether the root has the trait COMPUTE_STATUS_DISABLED
    :ivar sharing: the sharing providers of other trees that are available to the tree
    """

    root: Provider
    providers: Sequence[Provider]
    parents: Sequence[int]
    totals: Totals
    fullest: int | None
    disabled: bool = False
    sharing: tuple[Provider, ...] = ()

    @property
    def fullness(self) -> float:
        """The fullness of the fullest class; -1 without such a class."""
        fullness = None if self.fullest is None else self.totals[self.fullest].fullness
        return -1.0 if fullness is None else fullness


def capacity(inventory: model.ProviderInventory) -> int:
    """Return the number of whole units that can be allocated in total.

    It is negative if more is reserved than the total.
    """
    return int(inventory.capacity)
