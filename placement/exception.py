"""What can go wrong, in the words of the domain.

An exception carries the facts as attributes and makes one sentence of them. It knows
the error code that clients read (`errors.py`) and the *kind* of failure, and nothing of
HTTP: `wsgi_wrapper` turns a kind into a status.
"""

from collections.abc import Iterable

from placement import errors


class PlacementException(Exception):
    """Something that a caller has to know; `str()` is a sentence that a client may read."""

    code = errors.UNDEFINED_CODE


class NotFound(PlacementException):
    """What the request itself is about does not exist."""


class BadInput(PlacementException):
    """The request names or asks for something that cannot be."""


class Conflict(PlacementException):
    """The request is sound, and the state of the cloud does not allow it."""


class Forbidden(PlacementException):
    """The caller may not do this."""


class ServiceUnavailable(PlacementException):
    """Nobody's fault: the database cannot answer just now. The same request may succeed later."""


# Not found --------------------------------------------------------------------


class ResourceProviderNotFound(NotFound):
    def __init__(self, uuid: str):
        self.uuid = uuid
        super().__init__(f'No resource provider with uuid {uuid} found.')


class ResourceClassNotFound(NotFound):
    def __init__(self, name: str):
        self.name = name
        super().__init__(f'No such resource class {name}.')


class TraitNotFound(NotFound):
    def __init__(self, name: str):
        self.name = name
        super().__init__(f'No such trait {name}.')


class InventoryNotFound(NotFound):
    def __init__(self, resource_class: str, provider_uuid: str, deleting: bool = False):
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f'No inventory of class {resource_class} found for delete on {provider_uuid}.'
            if deleting
            else f'No inventory of class {resource_class} for {provider_uuid}.'
        )


class AllocationsNotFound(NotFound):
    def __init__(self, consumer_uuid: str):
        self.consumer_uuid = consumer_uuid
        super().__init__(f"No allocations for consumer '{consumer_uuid}'.")


# Bad input --------------------------------------------------------------------


class UnknownResourceProviders(BadInput):
    """Providers that a body names and that do not exist."""

    def __init__(self, uuids: Iterable[str], code: str = errors.UNDEFINED_CODE):
        self.uuids = sorted(uuids)
        self.code = code
        super().__init__(f'No such resource provider: {", ".join(self.uuids)}.')


class UnknownResourceClasses(BadInput):
    """Resource classes that a body or a query names and that do not exist."""

    def __init__(self, names: Iterable[str]):
        self.names = sorted(names)
        super().__init__(f'Unknown resource class: No such resource class {", ".join(self.names)}.')


class UnknownTraits(BadInput):
    """Traits that a body or a query names and that do not exist."""

    def __init__(self, names: Iterable[str]):
        self.names = sorted(names)
        super().__init__(f'No such trait(s): {", ".join(self.names)}.')


class StandardResourceClass(BadInput):
    def __init__(self, name: str, action: str):
        self.name = name
        super().__init__(f'Cannot {action} standard resource class {name}.')


class StandardTrait(BadInput):
    def __init__(self, name: str):
        self.name = name
        super().__init__(f'Cannot delete standard trait {name}.')


class UnknownParent(BadInput):
    def __init__(self, uuid: str):
        self.uuid = uuid
        super().__init__(f'The parent resource provider {uuid} does not exist.')


class ParentLoop(BadInput):
    def __init__(self, uuid: str, parent_uuid: str):
        self.uuid = uuid
        self.parent_uuid = parent_uuid
        super().__init__(
            f'Resource provider {uuid} cannot have {parent_uuid} as its parent: '
            'a provider is no ancestor of itself.'
        )


class ReparentingNotAllowed(BadInput):
    def __init__(self, uuid: str):
        self.uuid = uuid
        super().__init__(
            f'Resource provider {uuid} has a parent, and changing it is not allowed '
            'in this microversion.'
        )


class InvalidInventoryCapacity(BadInput):
    def __init__(self, resource_class: str, provider_uuid: str):
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f"Invalid inventory for '{resource_class}' on resource provider '{provider_uuid}': "
            'the reserved value leaves no capacity that this microversion allows.'
        )


class InventoryMissingForUpdate(BadInput):
    def __init__(self, resource_class: str, provider_uuid: str):
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(f'No inventory of class {resource_class} to update on {provider_uuid}.')


class ResourceProviderNameMissing(BadInput):
    def __init__(self, uuid: str):
        self.uuid = uuid
        super().__init__(f'Resource provider {uuid} needs a name that is not empty.')


class InvalidConsumerUuid(BadInput):
    def __init__(self, text: str):
        super().__init__(f"Malformed consumer_uuid: '{text}' is not a 'uuid'.")


class InvalidName(BadInput):
    """A name in a path that no custom trait or resource class can have."""

    def __init__(self, reason: str):
        super().__init__(f'Invalid name: {reason}')


class AmbiguousKeys(BadInput):
    """Several names in a request that the database compares as equal."""

    def __init__(self, key: str):
        self.key = key
        super().__init__(f'The request names {key} more than once, in different spellings.')


class RequestTooLarge(BadInput):
    """A body that names more records than the database takes in one statement."""

    def __init__(self) -> None:
        super().__init__('The request is about more than the database can take at once.')


class UnstorableValue(BadInput):
    """A value that no column can hold, by length, range or character set."""

    def __init__(self) -> None:
        super().__init__('The request has a value that the database cannot hold.')


class BadQuery(BadInput):
    """Parameters that do not go together; the sentence says which."""

    def __init__(self, sentence: str, code: str = errors.UNDEFINED_CODE):
        self.code = code
        super().__init__(sentence)


class BadQueryValue(BadQuery):
    """A value of the query string that cannot be read."""

    def __init__(self, parameter: str, value: str, reason: str, code: str = errors.UNDEFINED_CODE):
        self.parameter = parameter
        self.value = value
        super().__init__(f"Invalid value '{value}' for '{parameter}': {reason}.", code)


# Conflicts --------------------------------------------------------------------


class ConcurrentUpdate(Conflict):
    """A generation that the client gave is stale. Reading again and retrying may help."""

    code = errors.CONCURRENT_UPDATE


class ResourceProviderGenerationConflict(ConcurrentUpdate):
    def __init__(self, uuid: str, given: int, current: int):
        self.uuid = uuid
        self.given = given
        self.current = current
        super().__init__(
            f'Resource provider {uuid} has generation {current}, the request is for '
            f'{given}: the provider changed. Please update the generation and try again.'
        )


class ConsumerGenerationConflict(ConcurrentUpdate):
    def __init__(self, uuid: str, given: int | None, current: int | None):
        self.uuid = uuid
        self.given = given
        self.current = current
        super().__init__(
            f'consumer generation conflict - expected {"null" if current is None else current} '
            f'but got {"null" if given is None else given} for consumer {uuid}.'
        )


class ConcurrentChange(ConcurrentUpdate):
    """A rival moved a generation between reading and writing: run the transaction again."""

    def __init__(self, what: str):
        self.what = what
        super().__init__(f'{what} was changed by another request. Please try again.')


class RepeatedKeyViolation(Conflict):
    """A key of the database refuses a row, and no look-up finds the row that it conflicts with."""

    def __init__(self) -> None:
        super().__init__(
            'A unique or foreign key of the database rejects the change, and Placement finds no '
            'conflicting row. Retrying does not help. The service log names the key.'
        )


class ResourceProviderExists(Conflict):
    code = errors.DUPLICATE_NAME

    def __init__(self, field: str, value: str):
        self.field = field
        self.value = value
        super().__init__(f'Conflicting resource provider {field}: {value} already exists')


class ResourceProviderInUse(Conflict):
    code = errors.PROVIDER_IN_USE

    def __init__(self, uuid: str):
        self.uuid = uuid
        super().__init__(f'Unable to delete resource provider {uuid}: it has allocations.')


class CannotDeleteParentProvider(Conflict):
    code = errors.PROVIDER_CANNOT_DELETE_PARENT

    def __init__(self, uuid: str):
        self.uuid = uuid
        super().__init__(
            f'Unable to delete resource provider {uuid}: it has child providers, delete them first.'
        )


class InventoryInUse(Conflict):
    code = errors.INVENTORY_INUSE

    def __init__(
        self,
        resource_classes: Iterable[str],
        provider_uuid: str,
        code: str = errors.INVENTORY_INUSE,
    ):
        self.resource_classes = sorted(resource_classes)
        self.provider_uuid = provider_uuid
        self.code = code
        super().__init__(
            f"Inventory for '{', '.join(self.resource_classes)}' on resource provider "
            f"'{provider_uuid}' in use."
        )


class InventoryExists(ConcurrentUpdate):
    def __init__(self, resource_class: str, provider_uuid: str):
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f'Resource provider {provider_uuid} already has inventory of {resource_class}.'
        )


class InvalidAllocation(Conflict):
    """An amount that cannot be granted; `reason` says why, in a sentence."""

    def __init__(self, resource_class: str, provider_uuid: str, reason: str):
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        self.reason = reason
        super().__init__(
            f"Unable to allocate inventory: Inventory for '{resource_class}' on "
            f"resource provider '{provider_uuid}' {reason}"
        )


class TraitExists(Conflict):
    """The database compares the name as equal to that of another trait."""

    def __init__(self, name: str):
        self.name = name
        super().__init__(f'Trait {name} already exists.')


class ResourceClassExists(Conflict):
    def __init__(self, name: str):
        self.name = name
        super().__init__(f'Resource class {name} already exists.')


class ResourceClassInUse(Conflict):
    def __init__(self, name: str):
        self.name = name
        super().__init__(f'Resource class {name} is in use in inventory.')


class TraitInUse(Conflict):
    def __init__(self, name: str):
        self.name = name
        super().__init__(f'The trait {name} is in use by a resource provider.')


class PolicyNotAuthorized(Forbidden):
    def __init__(self, action: str):
        self.action = action
        super().__init__(f'Policy does not allow {action} to be performed.')


# The database -----------------------------------------------------------------


class DatabaseUnavailable(ServiceUnavailable):
    def __init__(self) -> None:
        super().__init__('The database cannot answer at the moment. Please try again.')


class OutcomeUnknown(ServiceUnavailable):
    """The connection was lost while COMMIT was under way."""

    def __init__(self) -> None:
        super().__init__(
            'The connection to the database was lost while the change was being committed: '
            'it may or may not have been made. Please look before trying again.'
        )


class UnsuitableDatabase(PlacementException):
    """The database server is set up in a way that this service cannot work with."""
