"""The query string or the body of the request is invalid."""

from collections.abc import Iterable

from placement import errors
from placement.exception.kinds import BadInput


class UnknownResourceProviders(BadInput):
    """The body names resource providers that do not exist."""

    def __init__(self, uuids: Iterable[str], code: str = errors.UNDEFINED_CODE) -> None:
        self.uuids = sorted(uuids)
        self.code = code
        super().__init__(f'No such resource provider: {", ".join(self.uuids)}.')


class UnknownResourceClasses(BadInput):
    """The body or the query string names resource classes that do not exist."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(names)
        super().__init__(f'Unknown resource class: No such resource class {", ".join(self.names)}.')


class UnknownTraits(BadInput):
    """The body or the query string names traits that do not exist."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(names)
        super().__init__(f'No such trait: {", ".join(self.names)}.')


class StandardResourceClass(BadInput):
    """A standard resource class can be neither renamed nor deleted."""

    def __init__(self, name: str, action: str) -> None:
        self.name = name
        super().__init__(f'Cannot {action} standard resource class {name}.')


class StandardTrait(BadInput):
    """A standard trait cannot be deleted."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'Cannot delete standard trait {name}.')


class UnknownParent(BadInput):
    """The parent provider named in the body does not exist."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(f'The parent resource provider {uuid} does not exist.')


class ParentLoop(BadInput):
    """The parent provider named in the body is the provider itself or one of its descendants."""

    def __init__(self, uuid: str, parent_uuid: str) -> None:
        self.uuid = uuid
        self.parent_uuid = parent_uuid
        super().__init__(
            f'Resource provider {parent_uuid} cannot be the parent of {uuid}: '
            'the parent must be neither the provider itself nor one of its descendants.'
        )


class ReparentingNotAllowed(BadInput):
    """Before microversion 1.37, the parent of a provider can be neither changed nor removed."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(
            f'The parent of resource provider {uuid} cannot be changed or removed '
            'in this microversion.'
        )


class InvalidInventoryCapacity(BadInput):
    """The capacity of an inventory is below the minimum that the microversion allows."""

    def __init__(self, resource_class: str, provider_uuid: str) -> None:
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f"Invalid inventory for '{resource_class}' on resource provider '{provider_uuid}': "
            'the capacity, (total - reserved) * allocation_ratio, is below the minimum that this '
            'microversion allows.'
        )


class InventoryMissingForUpdate(BadInput):
    """The provider has no inventory of the resource class that the request updates."""

    def __init__(self, resource_class: str, provider_uuid: str) -> None:
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f'No inventory of class {resource_class} found for update on {provider_uuid}.'
        )


class ResourceProviderNameMissing(BadInput):
    """The name of a resource provider is empty."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(f'The name of resource provider {uuid} must not be empty.')


class InvalidConsumerUuid(BadInput):
    """The consumer UUID in the path is not a valid UUID."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Malformed consumer_uuid: '{text}' is not a 'uuid'.")


class InvalidName(BadInput):
    """The name in the path is not a valid name for a custom trait or resource class."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f'Invalid name: {reason}')


class AmbiguousKeys(BadInput):
    """The request contains different names that the database treats as equal."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f'The request names {key} more than once, in different spellings.')


class RequestTooLarge(BadInput):
    """The body names more objects than the database accepts in one statement."""

    def __init__(self) -> None:
        super().__init__(
            'The request names more objects than the database accepts in one statement.'
        )


class UnstorableValue(BadInput):
    """A value in the request does not fit its column in length, range or character set."""

    def __init__(self) -> None:
        super().__init__('The request contains a value that the database cannot store.')


class InvalidQuery(BadInput):
    """The query string violates the schema of the route, or it cannot be decoded."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'Invalid query string parameters: {reason}')


class BadQuery(BadInput):
    """The query string lacks a parameter, or contains parameters that are not allowed together."""

    def __init__(self, sentence: str, code: str = errors.UNDEFINED_CODE) -> None:
        self.code = code
        super().__init__(sentence)


class BadQueryValue(BadQuery):
    """A query parameter has an invalid value."""

    def __init__(
        self, parameter: str, value: str, reason: str, code: str = errors.UNDEFINED_CODE
    ) -> None:
        self.parameter = parameter
        self.value = value
        self.reason = reason
        super().__init__(f"Invalid value '{value}' for '{parameter}': {reason}.", code)
