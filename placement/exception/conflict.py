"""The request conflicts with the stored state."""

from collections.abc import Iterable, Mapping

from placement import errors
from placement.exception.kinds import Conflict

# Generations --------------------------------------------------------------------


class ConcurrentUpdate(Conflict):
    """Another client changed the object first. The client can read the object again and retry."""

    code = errors.CONCURRENT_UPDATE


class ResourceProviderGenerationConflict(ConcurrentUpdate):
    """The provider generation in the request does not match the stored generation."""

    def __init__(self, uuid: str, given: int, current: int) -> None:
        self.uuid = uuid
        self.given = given
        self.current = current
        super().__init__(
            f'Resource provider {uuid} has generation {current}, but the request has generation '
            f'{given}. Please update the generation and try again.'
        )


class ConsumerGenerationConflict(ConcurrentUpdate):
    """The consumer generation in the request does not match the stored generation.

    For a consumer that does not exist, the request must contain the generation null.
    """

    def __init__(self, uuid: str, given: int | None, current: int | None) -> None:
        self.uuid = uuid
        self.given = given
        self.current = current
        super().__init__(
            f'consumer generation conflict - expected {"null" if current is None else current} '
            f'but got {"null" if given is None else given} for consumer {uuid}.'
        )


class ConcurrentChange(ConcurrentUpdate):
    """A concurrent transaction changed a row after this transaction read it.

    Placement retries the transaction. The client receives this error only if the retries fail too.

    :param provider_uuids: the resource providers of which at least one was changed, if known
    """

    def __init__(self, what: str, provider_uuids: Iterable[str] = ()) -> None:
        self.what = what
        self.provider_uuids = sorted(provider_uuids)
        super().__init__(f'{what} was changed by a concurrent request. Please try again.')


# Duplicates ---------------------------------------------------------------------


class RepeatedKeyViolation(Conflict):
    """A write repeatedly violates a unique or foreign key, but no query finds a conflicting row."""

    def __init__(self) -> None:
        super().__init__(
            'The change repeatedly violates a unique or foreign key constraint, but Placement '
            'cannot find the conflicting row. Retrying does not help. The service log contains the '
            'name of the constraint.'
        )


class ResourceProviderExists(Conflict):
    """Another provider already has this name or UUID."""

    code = errors.DUPLICATE_NAME

    def __init__(self, field: str, value: str) -> None:
        self.field = field
        self.value = value
        super().__init__(f'Conflicting resource provider {field}: {value} already exists')


class InventoryExists(ConcurrentUpdate):
    """The provider already has an inventory of the resource class."""

    def __init__(self, resource_class: str, provider_uuid: str) -> None:
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f'Resource provider {provider_uuid} already has an inventory of {resource_class}.'
        )


class TraitExists(Conflict):
    """Another trait has a name that the database treats as equal to the requested name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'Trait {name} already exists.')


class ResourceClassExists(Conflict):
    """Another resource class has this name, or a name that the database treats as equal."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'Resource class {name} already exists.')


# Objects in use -----------------------------------------------------------------


class ResourceProviderInUse(Conflict):
    """The provider cannot be deleted, because it has allocations."""

    code = errors.PROVIDER_IN_USE

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(f'Unable to delete resource provider {uuid}: it has allocations.')


class CannotDeleteParentProvider(Conflict):
    """The provider cannot be deleted, because it has children."""

    code = errors.PROVIDER_CANNOT_DELETE_PARENT

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(
            f'Unable to delete resource provider {uuid}: delete its child providers first.'
        )


class InventoryInUse(Conflict):
    """The inventories cannot be deleted, because allocations against them exist."""

    code = errors.INVENTORY_INUSE

    def __init__(
        self,
        resource_classes: Iterable[str],
        provider_uuid: str,
        code: str = errors.INVENTORY_INUSE,
    ) -> None:
        self.resource_classes = sorted(resource_classes)
        self.provider_uuid = provider_uuid
        self.code = code
        super().__init__(
            f"update conflict: Inventory for '{', '.join(self.resource_classes)}' on resource "
            f"provider '{provider_uuid}' in use."
        )


class ResourceClassInUse(Conflict):
    """The resource class cannot be deleted, because inventories of it exist."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'Resource class {name} is in use by an inventory.')


class TraitInUse(Conflict):
    """The trait cannot be deleted, because resource providers have it."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'The trait {name} is in use by a resource provider.')


# Capacity -----------------------------------------------------------------------


class InvalidAllocation(Conflict):
    """An inventory does not allow the requested amount.

    :param rule: the violated rule: `no_inventory`, `min_unit`, `max_unit`, `step_size`, or
        `capacity`
    :param reason: completes the message "Inventory for … on resource provider …", for example
        "does not exist."
    :param consumer_uuid: the consumer of the refused allocation
    :param requested: the requested amount; for the rule `capacity`, the sum of the amounts that the
        consumers in the request have requested so far
    :param used: the usage of all other consumers
    :param limits: `capacity`, `min_unit`, `max_unit` and `step_size` of the inventory; empty if
        there is no inventory
    """

    def __init__(
        self,
        resource_class: str,
        provider_uuid: str,
        rule: str,
        reason: str,
        *,
        consumer_uuid: str,
        requested: int,
        used: int = 0,
        limits: Mapping[str, int],
    ) -> None:
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        self.rule = rule
        self.reason = reason
        self.consumer_uuid = consumer_uuid
        self.requested = requested
        self.used = used
        self.limits = limits
        super().__init__(
            f"Unable to allocate inventory: Inventory for '{resource_class}' on "
            f"resource provider '{provider_uuid}' {reason}"
        )
