"""Data classes of a request that writes allocations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.objects.inventory import Plan

# The names of the project, the user and the consumer type, in this order. A consumer has no type if
# the request that created it named none; a damaged database can contain a consumer without owners.
Owners = tuple[str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """The request to replace all allocations of one consumer.

    A claim without allocations removes all allocations of the consumer, and deletes the consumer.

    :param consumer_type: the name of the consumer type; None (before microversion 1.38) keeps the
        type of an existing consumer
    :param generation: the consumer generation in the request, None for a new consumer
    :param checks_generation: whether the generation is checked (from microversion 1.28 on)
    :param allocations: for each provider UUID, the requested amounts keyed by class name
    """

    consumer_uuid: str
    project_id: str
    user_id: str
    consumer_type: str | None
    generation: int | None
    checks_generation: bool
    allocations: Mapping[str, Mapping[str, int]]

    @property
    def requires_new_consumer(self) -> bool:
        """Whether the claim creates the consumer, and fails if the consumer exists."""
        return self.checks_generation and self.generation is None and bool(self.allocations)

    @property
    def owners(self) -> Owners:
        """The owners in the request; the type is None if the claim keeps the current type."""
        return self.project_id, self.user_id, self.consumer_type


@dataclass(frozen=True, slots=True)
class Demand:
    """One requested allocation: an amount of one resource class from one provider.

    :param consumer_uuid: the consumer UUID as it is spelled in the database
    :param provider_uuid: the provider UUID as it is spelled in the request
    """

    consumer_uuid: str
    provider_id: int
    provider_uuid: str
    resource_class: str
    amount: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """The request to replace all inventories of one provider in a reshape.

    :param generation: the provider generation in the request
    :param inventories: the new inventories, keyed by class name
    """

    generation: int
    inventories: Mapping[str, Inventory]

    @property
    def increment(self) -> int:
        """By how much the request increments the provider generation, apart from claims.

        Clients can see this number. A reshape counts as two writes: the first adds the new
        inventories to the current ones, and the second removes the old inventories. Without new
        inventories, only the second write counts.
        """
        return 2 if self.inventories else 1


@dataclass(frozen=True, slots=True)
class Reshape:
    """The inventory changes of a reshape.

    :param plans: the inventory changes of each provider, keyed by provider id
    :param current_and_new: all current inventories and all new inventories; if an inventory exists
        already, the new values are used. Requested amounts are checked against these inventories
    """

    plans: Mapping[int, Plan]
    current_and_new: Mapping[InventoryKey, InventoryUsage]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A stored consumer whose row is locked."""

    id: int
    uuid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Provider:
    """A stored provider; its row is locked, and its generation is incremented."""

    id: int
    uuid: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """A stored allocation.

    :param consumer_uuid: the consumer UUID as this row spells it
    :param provider_id: None if the provider does not exist
    :param provider_uuid: None if the provider does not exist
    :param resource_class: None if the class does not exist
    """

    id: int
    consumer_uuid: str
    provider_id: int | None
    provider_uuid: str | None
    resource_class: str | None
    used: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What one statement reads.

    :param providers: the providers, keyed by id
    :param inventories: all inventories of the providers, with their usage
    :param allocations: the allocations of the consumers
    :param owners: the owners of the consumers, keyed by stored consumer UUID
    """

    providers: Mapping[int, Provider]
    inventories: Mapping[InventoryKey, InventoryUsage]
    allocations: Sequence[Allocation]
    owners: Mapping[str, Owners]


@dataclass(frozen=True, slots=True)
class LockedClaims:
    """The claims of a request, and the stored data against which `judge` checks them.

    The rows are locked, so that the data stays current until the transaction ends.

    :param claims: the claims of the request
    :param consumers: the consumers that existed before the request, keyed by requested UUID
    :param new_owners: for each claim with allocations, keyed by requested consumer UUID: the owners
        in the claim that the consumer does not have yet, keyed by their index in `Owners`
    :param allocations: the allocations of the requested consumers before the request. No lock
        protects allocations whose consumer has no row, so `write` compares the number of deleted
        rows with the number of these allocations
    :param providers: the locked providers, keyed by requested or stored UUID
    :param inventories: all inventories of the providers, with their usage before the request
    :param class_ids: the ids of all classes of `inventories` and of the request, keyed by name
    :param demands: the requested allocations
    :param released: the sum of `allocations` for each pair of provider and resource class
    """

    claims: Sequence[Claim]
    consumers: Mapping[str, Consumer]
    new_owners: Mapping[str, Mapping[int, str]]
    allocations: Sequence[Allocation]
    providers: Mapping[str, Provider]
    inventories: Mapping[InventoryKey, InventoryUsage]
    class_ids: Mapping[str, int]
    demands: Sequence[Demand]
    released: Mapping[InventoryKey, int]
