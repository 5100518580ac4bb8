"""The path or the object does not exist, or the path does not support the method."""

from placement.exception.kinds import NotFound, PlacementException


class RouteNotFound(NotFound):
    """In the microversion of the request, no route matches the path."""

    def __init__(self) -> None:
        super().__init__('The path does not exist.')


class MethodNotAllowed(PlacementException):
    """In the microversion of the request, the path does not support the method."""

    def __init__(self, method: str, allowed: str = '') -> None:
        self.method = method
        self.allowed = allowed
        super().__init__(f'The method {method} is not allowed for this resource.')


class ResourceProviderNotFound(NotFound):
    """The resource provider in the path does not exist."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(f'No resource provider with uuid {uuid} found.')


class ResourceClassNotFound(NotFound):
    """The resource class in the path does not exist."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'No such resource class {name}.')


class TraitNotFound(NotFound):
    """The trait in the path does not exist."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'No such trait {name}.')


class InventoryNotFound(NotFound):
    """The provider has no inventory of the resource class in the path."""

    def __init__(self, resource_class: str, provider_uuid: str, deleting: bool = False) -> None:
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid
        super().__init__(
            f'No inventory of class {resource_class} found for delete on {provider_uuid}.'
            if deleting
            else f'No inventory of class {resource_class} for {provider_uuid}.'
        )


class AllocationsNotFound(NotFound):
    """The consumer in the path has no allocations to delete."""

    def __init__(self, consumer_uuid: str) -> None:
        self.consumer_uuid = consumer_uuid
        super().__init__(f"No allocations for consumer '{consumer_uuid}'.")
