"""What one read of the database returns, and the metrics that are computed from it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from placement.capacity import Inventory

T = TypeVar('T')


# The name of each query, and the number of its claims that fit.
Headroom = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Drains:
    """The number of trees with allocations, and of those whose consumers fit elsewhere."""

    checked: int
    drainable: int


@dataclass(frozen=True, slots=True)
class ProviderInventory:
    """An inventory of a provider.

    :ivar provider: the name of the provider
    :ivar used: the sum of the allocations against the inventory
    :ivar generation: the generation of the provider
    """

    provider: str
    resource_class: str
    inventory: Inventory
    used: int
    generation: int


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider.

    :ivar root: the name of the root provider
    :ivar disabled: whether the root provider has the trait COMPUTE_STATUS_DISABLED
    """

    name: str
    uuid: str
    root: str
    disabled: bool


@dataclass(frozen=True, slots=True)
class ProjectUsage:
    """The usage of one resource class by the consumers of a project."""

    project: str
    resource_class: str
    used: int


@dataclass(frozen=True, slots=True)
class Cloud:
    """The state of the cloud.

    :ivar inventories: sorted by the names of the provider and of the resource class
    :ivar providers: the number of providers that the API lists
    :ivar consumers: the number of consumers that have allocations
    :ivar allocations: the number of allocations, each of one consumer, provider and resource class
    :ivar details: the providers that the API lists, sorted by name
    :ivar aggregates: the name of a provider and the UUID of one of its aggregates, sorted
    :ivar projects: sorted by project and resource class
    :ivar headroom: empty if it was not computed
    :ivar drains: None if it was not computed
    :ivar unlisted: the number of providers that the API does not list, because they have no root
    """

    inventories: tuple[ProviderInventory, ...]
    providers: int
    consumers: int
    allocations: int
    details: tuple[Provider, ...] = ()
    aggregates: tuple[tuple[str, str], ...] = ()
    projects: tuple[ProjectUsage, ...] = ()
    headroom: Headroom = ()
    drains: Drains | None = None
    unlisted: int = 0


@dataclass(frozen=True, slots=True)
class Gauge(Generic[T]):
    """A metric.

    :ivar help: one sentence, which the exposition contains
    :ivar value: returns the value of a sample
    """

    name: str
    help: str
    value: Callable[[T], float]


@dataclass(frozen=True, slots=True)
class LabeledGauge:
    """A metric with labels of its own.

    :ivar samples: returns the values of the labels, and the value, of each sample
    """

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Cloud], Iterable[tuple[tuple[str, ...], float]]]


# 1 if the database was read, else 0. Without the database, this is the only metric.
UP = 'placement_up'
UP_HELP = 'Whether the exporter could read the database of Placement.'
# The labels of the metrics in `OF_INVENTORIES`. These labels, and the first five names, are those
# of openstack-exporter, so that existing dashboards can be used.
LABELS = ('hostname', 'resourcetype')
OF_INVENTORIES: tuple[Gauge[ProviderInventory], ...] = (
    Gauge(
        'openstack_placement_resource_total',
        'Total amount of a resource class that a resource provider has.',
        lambda one: one.inventory.total,
    ),
    Gauge(
        'openstack_placement_resource_reserved',
        'Amount of a resource class that is reserved on a resource provider.',
        lambda one: one.inventory.reserved,
    ),
    Gauge(
        'openstack_placement_resource_allocation_ratio',
        'Allocation ratio of a resource class on a resource provider.',
        lambda one: one.inventory.allocation_ratio,
    ),
    Gauge(
        'openstack_placement_resource_usage',
        'Amount of a resource class that is allocated on a resource provider.',
        lambda one: one.used,
    ),
    Gauge(
        'openstack_placement_resource_generation',
        'Generation of the resource provider.',
        lambda one: one.generation,
    ),
    Gauge(
        'placement_resource_capacity',
        'Capacity of a resource class on a resource provider: (total - reserved) * '
        'allocation_ratio, truncated to an integer.',
        # Truncated as in the response to GET /allocation_candidates.
        lambda one: int(one.inventory.capacity),
    ),
)
OF_THE_CLOUD: tuple[Gauge[Cloud], ...] = (
    Gauge('placement_providers', 'Resource providers.', lambda cloud: cloud.providers),
    Gauge('placement_consumers', 'Consumers that have allocations.', lambda cloud: cloud.consumers),
    Gauge(
        'placement_allocations',
        'Allocations, each of one consumer, resource provider and resource class.',
        lambda cloud: cloud.allocations,
    ),
)
INFO, AGGREGATE = 'placement_provider_info', 'placement_provider_aggregate'
PROJECT_USAGE, HEADROOM = 'placement_project_usage', 'placement_headroom'
LABELED: tuple[LabeledGauge, ...] = (
    LabeledGauge(
        INFO,
        'A resource provider: its UUID, the name of its root provider, and whether the root is '
        'disabled.',
        ('hostname', 'uuid', 'root', 'disabled'),
        lambda cloud: (
            ((one.name, one.uuid, one.root, str(one.disabled).lower()), 1) for one in cloud.details
        ),
    ),
    LabeledGauge(
        AGGREGATE,
        'An aggregate of a resource provider.',
        ('hostname', 'aggregate'),
        lambda cloud: ((labels, 1) for labels in cloud.aggregates),
    ),
    LabeledGauge(
        PROJECT_USAGE,
        'Amount of a resource class that the consumers of a project use.',
        ('project', 'resourcetype'),
        lambda cloud: (((one.project, one.resource_class), one.used) for one in cloud.projects),
    ),
    LabeledGauge(
        HEADROOM,
        'Claims of a query that fit in addition to the present ones.',
        ('query',),
        lambda cloud: (((name,), fits) for name, fits in cloud.headroom),
    ),
    LabeledGauge(
        'placement_trees_checked',
        'Provider trees with allocations that were checked for a drain.',
        (),
        lambda cloud: [((), cloud.drains.checked)] if cloud.drains else (),
    ),
    LabeledGauge(
        'placement_trees_drainable',
        'Provider trees with allocations whose consumers fit elsewhere.',
        (),
        lambda cloud: [((), cloud.drains.drainable)] if cloud.drains else (),
    ),
)
# The metrics that the option --without can leave out.
OPTIONAL = frozenset(
    [one.name for one in OF_THE_CLOUD]
    + [one.name for one in OF_INVENTORIES]
    + [one.name for one in LABELED]
)
