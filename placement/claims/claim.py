"""Data classes of a request that writes allocations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.objects.inventory_rows import Plan
from placement.objects.provider_rows import Locked


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


@dataclass(frozen=True, slots=True)
class Reshape:
    """The inventory changes and the provider generation increments of a reshape.

    :param plans: the inventory changes of each provider, keyed by provider id
    :param current_and_new: all current inventories and all new inventories; if an inventory exists
        already, the new values are used. Requested amounts are checked against these inventories
    :param after: the inventories that exist after the reshape, with their usage before the reshape
    :param class_ids: the id of each class in `current_and_new`, keyed by class name
    :param increments: the generation increment for each provider id
    """

    plans: Mapping[int, Plan]
    current_and_new: Mapping[InventoryKey, InventoryUsage]
    after: Mapping[InventoryKey, InventoryUsage]
    class_ids: Mapping[str, int]
    increments: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A stored consumer with the ids of its project, user and consumer type."""

    id: int
    uuid: str
    generation: int
    project_id: int
    user_id: int
    consumer_type_id: int | None


@dataclass(frozen=True, slots=True)
class Owners:
    """The ids of projects, users and consumer types, keyed by their names in the request."""

    projects: Mapping[str, int]
    users: Mapping[str, int]
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LockedClaims:
    """The claims of a request, and the stored data against which `judge` checks them.

    The rows are locked, so that the data stays current until the transaction ends.

    :param claims: the claims of the request
    :param consumers: the consumers that existed before the request, keyed by requested UUID
    :param owners: the ids of projects, users and consumer types
    :param allocations: the allocations of the requested consumers before the request, as rows of
        `statements.ALLOCATIONS_OF_CONSUMERS`. No lock protects allocations whose consumer has no
        row, so `write` compares the number of deleted rows with the number of these rows
    :param providers: the locked providers, keyed by requested or stored UUID
    :param missing_providers: the requested provider UUIDs for which no provider exists
    :param demands: the requested allocations from existing providers
    :param released: the sum of `allocations` for each pair of provider and resource class
    :param provider_ids_of_deleted_consumers: the ids of the providers in `allocations` of consumers
        that the request deletes, because their claims contain no allocations
    """

    claims: Sequence[Claim]
    consumers: Mapping[str, Consumer]
    owners: Owners
    allocations: Sequence[Any]
    providers: Mapping[str, Locked]
    missing_providers: frozenset[str]
    demands: Sequence[Demand]
    released: Mapping[InventoryKey, int]
    provider_ids_of_deleted_consumers: frozenset[int]
