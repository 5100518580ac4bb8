"""The data of a request that writes allocations. Plain data, without behaviour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.capacity import Inventory, InventoryKey, InventoryUsage
from placement.objects.inventory_plan import Plan
from placement.objects.provider_locks import Locked


@dataclass(frozen=True, slots=True)
class Claim:
    """All allocations that one consumer has after the request; none of them: a release.

    :param consumer_type: None keeps the type of an existing consumer (before microversion 1.38)
    :param generation: the consumer generation that the client read, None for a new consumer;
        ignored unless `checks_generation` (microversion 1.28)
    :param allocations: amounts by resource class, by provider UUID
    """

    consumer_uuid: str
    project_id: str
    user_id: str
    consumer_type: str | None
    generation: int | None
    checks_generation: bool
    allocations: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Demand:
    """One requested allocation: an amount of one resource class from one provider.

    :param consumer_uuid: the UUID of the consumer as the database stores it
    :param provider_uuid: the UUID of the provider as the request spells it
    """

    consumer_uuid: str
    provider_id: int
    provider_uuid: str
    resource_class: str
    amount: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """All inventories that one provider has after a reshape.

    :param generation: the provider generation that the client read
    :param inventories: by class name
    """

    generation: int
    inventories: Mapping[str, Inventory]


@dataclass(frozen=True, slots=True)
class Reshape:
    """What a reshape changes.

    :param plans: the changes of inventories, by provider id
    :param current_and_new: the inventories that exist while allocations are replaced
    :param after: the inventories after the reshape, with their usage before it
    :param class_ids: the ids by name of the classes of all these inventories
    :param increments: by provider id, how often its generation is incremented
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
    """Ids of projects, users and consumer types by the names in the request."""

    projects: Mapping[str, int]
    users: Mapping[str, int]
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Ground:
    """What the database contains, with rows locked, before a request is judged.

    :param claims: the claims of the request
    :param consumers: the consumers that existed before the request, by requested UUID
    :param owners: the ids of projects, users and consumer types
    :param allocations: the allocations of the requested consumers before the request, as rows of
        `statements.ALLOCATIONS_OF_CONSUMERS`. No lock protects them if their consumer has no row,
        so the number of deleted rows is compared with the number of these rows
    :param providers: the locked providers, by requested or stored UUID
    :param missing_providers: the UUIDs of providers that claims name and that do not exist
    :param demands: the requested allocations from existing providers
    :param released: the amounts in `allocations`, by provider and class
    :param cleared: the ids of providers with allocations of consumers that have none after the
        request
    """

    claims: Sequence[Claim]
    consumers: Mapping[str, Consumer]
    owners: Owners
    allocations: Sequence[Any]
    providers: Mapping[str, Locked]
    missing_providers: frozenset[str]
    demands: Sequence[Demand]
    released: Mapping[InventoryKey, int]
    cleared: frozenset[int]
