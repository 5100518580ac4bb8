"""The changes that a command assumes, and what their result reports."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from placement.objects.provider_search import Filters


@dataclass(frozen=True, slots=True)
class Without:
    """The tree of a provider does not exist, and neither do the allocations on its providers.

    :ivar text: the change as the operator wrote it
    :ivar provider: the name or the UUID of any provider of the tree
    """

    text: str
    provider: str


@dataclass(frozen=True, slots=True)
class Copies:
    """More trees like the tree of a provider exist, without allocations."""

    text: str
    provider: str
    count: int


@dataclass(frozen=True, slots=True)
class SetField:
    """A field of the inventories of one class has another value.

    :ivar filters: the filters of the providers; None for all providers
    """

    text: str
    resource_class: str
    field: str
    value: int | float
    filters: Filters | None


@dataclass(frozen=True, slots=True)
class SetTrait:
    """Providers have, or do not have, a trait.

    :ivar present: whether the providers have the trait
    :ivar filters: the filters of the providers; None for all providers
    """

    text: str
    name: str
    present: bool
    filters: Filters | None


@dataclass(frozen=True, slots=True)
class SetAggregate:
    """Providers are, or are not, in an aggregate.

    :ivar present: whether the providers are in the aggregate
    :ivar filters: the filters of the providers; None for all providers
    """

    text: str
    uuid: str
    present: bool
    filters: Filters | None


Change = Without | Copies | SetField | SetTrait | SetAggregate


@dataclass(frozen=True, slots=True)
class Over:
    """The usage above the capacity that the changes make.

    :ivar inventories: the number of inventories
    :ivar amount: the sum of the amounts above the capacity, in units of the class
    """

    inventories: int
    amount: int


@dataclass(frozen=True, slots=True)
class Assumed:
    """The state of the cloud after the changes.

    :ivar conn: the connection from which a command reads this state
    :ivar changes: the changes as the operator wrote them, in order
    :ivar over: resource class -> the usage above the capacity; only classes with such usage
    """

    conn: sa.Connection
    changes: tuple[str, ...]
    over: Mapping[str, Over]
