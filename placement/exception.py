"""The exceptions of Placement, by the kind of failure.

An exception stores its details as attributes, which `template` formats into the message for the
client. `code` is its error code (see `placement.errors`), and `status` is the HTTP status of the
response.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
import difflib
from http import HTTPStatus

import os_resource_classes
import os_traits

from placement import errors


class PlacementException(Exception):
    """The base class of all exceptions. `str()` returns the message for the client.

    :cvar template: the message, with the names of attributes in braces; if it is empty, the message
        is the argument of the exception
    :cvar status: None if the exception is never the response to a request
    """

    code = errors.UNDEFINED_CODE
    status: HTTPStatus | None = None
    template = ''

    def __str__(self) -> str:
        return self.template.format_map(vars(self)) if self.template else super().__str__()


def did_you_mean(wrong: Sequence[str], known: Iterable[str]) -> str:
    """Return a question with the known name that resembles a wrong one, for the end of a message.

    :param wrong: unknown names, in any letter case
    :returns: nothing if several names are wrong, because each comparison takes about 1 ms
    """
    if len(wrong) != 1:
        return ''
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(wrong[0].casefold(), folded, n=1)
    return f' Did you mean {folded[close[0]]}?' if close else ''


# The path or the object does not exist, or the path does not support the method ------


class NotFound(PlacementException):
    """The path of the request, or the object that it identifies, does not exist."""

    status = HTTPStatus.NOT_FOUND


@dataclass(eq=False)
class RouteNotFound(NotFound):
    """In the microversion of the request, no route matches the path.

    :ivar later: a clause with the first microversion that has the path, if one has it
    :ivar question: a question with a similar path, if there is one
    """

    later: str = ''
    question: str = ''
    template = 'The path does not exist{later}.{question}'


@dataclass(eq=False)
class MethodNotAllowed(PlacementException):
    """In the microversion of the request, the path does not support the method.

    :ivar later: a clause with the first microversion that supports the method, if one does
    """

    method: str
    allowed: str = ''
    later: str = ''
    status = HTTPStatus.METHOD_NOT_ALLOWED
    template = 'The method {method} is not allowed for this resource{later}.'

    def __post_init__(self) -> None:
        if self.allowed:
            self.template += ' It allows {allowed}.'


@dataclass(eq=False)
class ResourceProviderNotFound(NotFound):
    """The resource provider in the path does not exist."""

    uuid: str
    template = 'No resource provider with uuid {uuid} found.'


@dataclass(eq=False)
class ResourceClassNotFound(NotFound):
    """The resource class in the path does not exist."""

    name: str
    template = 'No such resource class {name}.'


@dataclass(eq=False)
class TraitNotFound(NotFound):
    """The trait in the path does not exist."""

    name: str
    template = 'No such trait {name}.'


@dataclass(eq=False)
class InventoryNotFound(NotFound):
    """The provider has no inventory of the resource class in the path."""

    resource_class: str
    provider_uuid: str
    deleting: bool = False
    template = 'No inventory of class {resource_class} for {provider_uuid}.'

    def __post_init__(self) -> None:
        if self.deleting:
            self.template = (
                'No inventory of class {resource_class} found for delete on {provider_uuid}.'
            )


@dataclass(eq=False)
class AllocationsNotFound(NotFound):
    """The consumer in the path has no allocations to delete."""

    consumer_uuid: str
    template = "No allocations for consumer '{consumer_uuid}'."


# The headers of the request ----------------------------------------------------------


class MalformedVersion(PlacementException):
    """The requested version does not have the form X.Y."""

    status = HTTPStatus.BAD_REQUEST


class UnsupportedVersion(PlacementException):
    """The requested version has a valid form, but the service does not support it."""

    status = HTTPStatus.NOT_ACCEPTABLE


class QueryLost(PlacementException):
    """The URL is so long that the web server has discarded the query string."""

    status = HTTPStatus.REQUEST_URI_TOO_LONG
    template = 'The URL is too long: the web server has discarded the query string.'


@dataclass(eq=False)
class NotAcceptable(PlacementException):
    """The Accept header does not allow any media type that the route can return."""

    offers: str
    status = HTTPStatus.NOT_ACCEPTABLE
    template = 'Only {offers} is provided'


@dataclass(eq=False)
class UnsupportedMediaType(PlacementException):
    """The body has a media type that the route does not accept."""

    received: str | None
    required: str
    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    template = 'The media type {received} is not supported, use {required}'


@dataclass(eq=False)
class BodyTooLarge(PlacementException):
    """The body is larger than the configured limit."""

    limit: int
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    template = 'The request body is larger than {limit} bytes.'


# The query string or the body of the request is invalid ------------------------------


class BadInput(PlacementException):
    """The query string or the body of the request is invalid."""

    status = HTTPStatus.BAD_REQUEST


class InvalidBodyHeader(BadInput):
    """The Content-Length header is invalid, or a body has no Content-Type header."""


@dataclass(eq=False)
class MalformedBody(BadInput):
    """The body is not valid JSON, or the client did not send the complete body."""

    reason: object
    template = 'Malformed JSON: {reason}'


@dataclass(eq=False)
class InvalidDocument(BadInput):
    """The body is valid JSON but violates the schema of the route."""

    reason: str
    template = 'JSON does not validate: {reason}'


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
        question = did_you_mean(self.names, os_resource_classes.STANDARDS)
        super().__init__(
            f'Unknown resource class: No such resource class {", ".join(self.names)}.{question}'
        )


class UnknownTraits(BadInput):
    """The body or the query string names traits that do not exist."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(names)
        question = did_you_mean(self.names, os_traits.get_traits())
        super().__init__(f'No such trait: {", ".join(self.names)}.{question}')


@dataclass(eq=False)
class StandardResourceClass(BadInput):
    """A standard resource class can be neither renamed nor deleted."""

    name: str
    action: str
    template = (
        'Cannot {action} standard resource class {name}. The name of a custom class begins with '
        'CUSTOM_.'
    )


@dataclass(eq=False)
class StandardTrait(BadInput):
    """A standard trait cannot be deleted."""

    name: str
    template = 'Cannot delete standard trait {name}.'


@dataclass(eq=False)
class UnknownParent(BadInput):
    """The parent provider named in the body does not exist."""

    uuid: str
    template = 'The parent resource provider {uuid} does not exist.'


@dataclass(eq=False)
class ParentLoop(BadInput):
    """The parent provider named in the body is the provider itself or one of its descendants."""

    uuid: str
    parent_uuid: str
    template = (
        'Resource provider {parent_uuid} cannot be the parent of {uuid}: '
        'the parent must be neither the provider itself nor one of its descendants.'
    )


@dataclass(eq=False)
class ReparentingNotAllowed(BadInput):
    """Before microversion 1.37, the parent of a provider can be neither changed nor removed."""

    uuid: str
    template = (
        'The parent of resource provider {uuid} cannot be changed or removed in this microversion.'
    )


@dataclass(eq=False)
class InvalidInventoryCapacity(BadInput):
    """The capacity of an inventory is below the minimum that the microversion allows."""

    resource_class: str
    provider_uuid: str
    template = (
        "Invalid inventory for '{resource_class}' on resource provider '{provider_uuid}': "
        'the capacity, (total - reserved) * allocation_ratio, is below the minimum that this '
        'microversion allows.'
    )


@dataclass(eq=False)
class InventoryMissingForUpdate(BadInput):
    """The provider has no inventory of the resource class that the request updates."""

    resource_class: str
    provider_uuid: str
    template = 'No inventory of class {resource_class} found for update on {provider_uuid}.'


@dataclass(eq=False)
class ResourceProviderNameMissing(BadInput):
    """The name of a resource provider is empty."""

    uuid: str
    template = 'The name of resource provider {uuid} must not be empty.'


@dataclass(eq=False)
class InvalidConsumerUuid(BadInput):
    """The consumer UUID in the path is not a valid UUID."""

    text: str
    template = "Malformed consumer_uuid: '{text}' is not a 'uuid'."


@dataclass(eq=False)
class InvalidName(BadInput):
    """The name in the path is not a valid name for a custom trait or resource class."""

    name: str
    reason: str
    template = (
        'Invalid name: {reason}. A name begins with CUSTOM_, and contains only capital letters, '
        'digits, and underscores.'
    )


@dataclass(eq=False)
class AmbiguousKeys(BadInput):
    """The request contains different names that the database treats as equal."""

    key: str
    template = 'The request names {key} more than once, in different spellings.'


class RequestTooLarge(BadInput):
    """The body names more objects than the database accepts in one statement."""

    template = 'The request names more objects than the database accepts in one statement.'


class UnstorableValue(BadInput):
    """A value in the request does not fit its column in length, range or character set."""

    template = 'The request contains a value that the database cannot store.'


@dataclass(eq=False)
class InvalidQuery(BadInput):
    """The query string violates the schema of the route, or it cannot be decoded."""

    reason: str
    template = 'Invalid query string parameters: {reason}'


class BadQuery(BadInput):
    """The query string lacks a parameter, or contains parameters that are not allowed together."""

    def __init__(self, sentence: str, code: str = errors.UNDEFINED_CODE) -> None:
        self.code = code
        super().__init__(sentence)


class UnknownParameter(BadQuery):
    """The path has no such query parameter in the microversion of the request.

    :param since: the first microversion with the parameter; None if no microversion has it
    :param known: the parameters that the path has
    """

    def __init__(self, name: str, since: object | None, known: Collection[str]) -> None:
        problem = f'is not supported before microversion {since}' if since else 'is unknown'
        hint = ''
        if known and not since:
            hint = did_you_mean([name], known) or f' The parameters are {", ".join(sorted(known))}.'
        super().__init__(f"Invalid query string parameters: '{name}' {problem}.{hint}")


@dataclass(eq=False)
class BadQueryValue(BadQuery):
    """A query parameter has an invalid value."""

    parameter: str
    value: str
    reason: str
    code: str = errors.UNDEFINED_CODE
    template = "Invalid value '{value}' for '{parameter}': {reason}."


# The policy does not allow the request -----------------------------------------------


class Forbidden(PlacementException):
    """The policy does not allow the request."""

    status = HTTPStatus.FORBIDDEN


@dataclass(eq=False)
class PolicyNotAuthorized(Forbidden):
    """The policy does not allow the caller to perform the action.

    :ivar default: the expression of the default of the policy rule
    """

    action: str
    default: str
    template = (
        'Policy does not allow {action} to be performed. By default, it needs {default}, and a '
        'token of a project.'
    )


# The request conflicts with the stored state: generations ----------------------------


class Conflict(PlacementException):
    """The request is valid but conflicts with the stored state."""

    status = HTTPStatus.CONFLICT


class ConcurrentUpdate(Conflict):
    """Another client changed the object first. The client can read the object again and retry."""

    code = errors.CONCURRENT_UPDATE


@dataclass(eq=False)
class ResourceProviderGenerationConflict(ConcurrentUpdate):
    """The provider generation in the request does not match the stored generation."""

    uuid: str
    given: int
    current: int
    template = (
        'Resource provider {uuid} has generation {current}, but the request has generation '
        '{given}. Please update the generation and try again.'
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


# The request conflicts with the stored state: duplicates -----------------------------


class RepeatedKeyViolation(Conflict):
    """A write repeatedly violates a unique or foreign key, but no query finds a conflicting row."""

    template = (
        'The change repeatedly violates a unique or foreign key constraint, but Placement '
        'cannot find the conflicting row. Retrying does not help. The service log contains the '
        'name of the constraint.'
    )


@dataclass(eq=False)
class ResourceProviderExists(Conflict):
    """Another provider already has this name or UUID."""

    field: str
    value: str
    code = errors.DUPLICATE_NAME
    template = 'Conflicting resource provider {field}: {value} already exists. Use another {field}.'


@dataclass(eq=False)
class InventoryExists(ConcurrentUpdate):
    """The provider already has an inventory of the resource class."""

    resource_class: str
    provider_uuid: str
    template = 'Resource provider {provider_uuid} already has an inventory of {resource_class}.'


@dataclass(eq=False)
class TraitExists(Conflict):
    """Another trait has a name that the database treats as equal to the requested name."""

    name: str
    template = 'Trait {name} already exists.'


@dataclass(eq=False)
class ResourceClassExists(Conflict):
    """Another resource class has this name, or a name that the database treats as equal."""

    name: str
    template = 'Resource class {name} already exists.'


# The request conflicts with the stored state: objects in use, and capacity -----------


@dataclass(eq=False)
class ResourceProviderInUse(Conflict):
    """The provider cannot be deleted, because it has allocations."""

    uuid: str
    code = errors.PROVIDER_IN_USE
    template = (
        'Unable to delete resource provider {uuid}: it has allocations. Delete them first: '
        'GET /resource_providers/{uuid}/allocations lists their consumers.'
    )


@dataclass(eq=False)
class CannotDeleteParentProvider(Conflict):
    """The provider cannot be deleted, because it has children."""

    uuid: str
    code = errors.PROVIDER_CANNOT_DELETE_PARENT
    template = 'Unable to delete resource provider {uuid}: delete its child providers first.'


class InventoryInUse(Conflict):
    """The inventories cannot be deleted, because allocations against them exist."""

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


@dataclass(eq=False)
class ResourceClassInUse(Conflict):
    """The resource class cannot be deleted, because inventories of it exist."""

    name: str
    template = 'Resource class {name} is in use by an inventory.'


@dataclass(eq=False)
class TraitInUse(Conflict):
    """The trait cannot be deleted, because resource providers have it."""

    name: str
    template = 'The trait {name} is in use by a resource provider.'


@dataclass(eq=False)
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

    resource_class: str
    provider_uuid: str
    rule: str
    reason: str
    _: KW_ONLY
    consumer_uuid: str
    requested: int
    used: int = 0
    limits: Mapping[str, int]
    template = (
        "Unable to allocate inventory: Inventory for '{resource_class}' on "
        "resource provider '{provider_uuid}' {reason}"
    )


# A required service is unavailable, or the service cannot start ----------------------


class ServiceUnavailable(PlacementException):
    """A required service, for example the database, is temporarily unavailable.

    The client can retry the request later.
    """

    status = HTTPStatus.SERVICE_UNAVAILABLE


class DatabaseUnavailable(ServiceUnavailable):
    """The database is temporarily unreachable, full, busy or read-only."""

    template = 'The database is unavailable at the moment. Please try again.'


class OutcomeUnknown(ServiceUnavailable):
    """The connection was lost during COMMIT, so the outcome of the transaction is unknown."""

    template = (
        'The connection to the database was lost during the commit, so the change may or may '
        'not have been made. Please check the result before you try again.'
    )


class IdentityUnavailable(ServiceUnavailable):
    """The identity service, Keystone, did not validate a token because it is unreachable."""

    template = 'The identity service is unavailable at the moment. Please try again.'


class PolicyServerUnavailable(ServiceUnavailable):
    """A policy rule refers to a remote server, and this server did not respond."""

    template = 'The policy server is unavailable at the moment. Please try again.'


class MetricsUnavailable(PlacementException):
    """The service cannot start, because metrics are enabled but cannot be recorded."""


class UnsuitableDatabase(PlacementException):
    """The service cannot start, because the configuration of the database is unsupported."""


@dataclass(eq=False)
class InvalidPolicyFile(PlacementException):
    """A policy file cannot be used.

    The service cannot start with this file, or it keeps the rules that it has.

    :param path: the policy file
    :param reason: the line, if it is known, and what is wrong
    """

    path: str
    reason: str
    template = (
        'The policy file {path} is not usable: {reason}. Correct it; placement-status '
        'preflight checks it.'
    )
