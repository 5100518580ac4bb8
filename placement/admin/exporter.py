"""The capacity of the cloud as metrics for Prometheus: `placement-manage exporter`.

`METRICS` lists the metrics. prometheus_client renders them, and `serving` serves them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
import functools
from typing import Any

from placement.admin import cloud
from placement.admin.cloud import Cloud
from placement.admin.console import Progress, silent
from placement.admin.drain.reading import all_trees
from placement.admin.headroom import reading, result
from placement.candidates.model import Provider, ProviderInventory, Query
from placement.db import engine

# 1 if the database was read, else 0. Without the database, this is the only metric.
UP = 'placement_up'
_PROJECT_USAGE = 'placement_project_usage'
# The metrics that are computed in the background.
_HEADROOM = 'placement_headroom'
_CHECKED, _DRAINABLE = 'placement_trees_checked', 'placement_trees_drainable'

# The values of the labels, and the value, of each sample.
Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class State:
    """What the metrics are computed from.

    :ivar computed: the samples that were computed in the background, by the name of the metric
    :ivar without: the names of metrics to leave out
    """

    cloud: Cloud
    computed: Mapping[str, Samples]
    without: Collection[str] = ()

    @functools.cached_property
    def providers(self) -> Collection[Provider]:
        """The providers that the API lists.

        It does not list a provider of an old release without a root, or of a damaged database whose
        root does not exist.
        """
        return [one for one in self.cloud.providers if one.root_id in self.cloud.names]

    @functools.cached_property
    def inventories(self) -> Collection[tuple[tuple[str, ...], ProviderInventory, int]]:
        """The labels, the inventory, and the generation of the provider, of these providers."""
        read = self.cloud
        return [
            ((read.names[one.id], read.classes[id_]), inventory, read.generations[one.id])
            for one in self.providers
            for id_, inventory in one.inventories.items()
            if id_ in read.classes
        ]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    :ivar help: one sentence, which the exposition contains
    :ivar labels: the names of the labels
    :ivar samples: None if the samples are computed in the background
    """

    help: str
    labels: tuple[str, ...] = ()
    samples: Callable[[State], Samples] | None = None


def _of_inventories(text: str, value: Callable[[ProviderInventory, int], float]) -> Metric:
    # These labels, and the first five names, are those of openstack-exporter, so that existing
    # dashboards can be used.
    return Metric(
        text,
        ('hostname', 'resourcetype'),
        lambda state: (
            (labels, value(one, generation)) for labels, one, generation in state.inventories
        ),
    )


def _single(text: str, value: Callable[[State], float]) -> Metric:
    return Metric(text, (), lambda state: [((), value(state))])


def _info(state: State) -> Samples:
    names, trait = state.cloud.names, state.cloud.disabled_trait
    disabled = {one.id for one in state.cloud.providers if trait in one.traits}
    for one in state.providers:
        is_disabled = str(one.root_id in disabled).lower()
        yield (names[one.id], one.uuid, names[one.root_id], is_disabled), 1


def _aggregates(state: State) -> Samples:
    names, uuids = state.cloud.names, state.cloud.aggregates
    for one in state.providers:
        for id_ in one.aggregates & uuids.keys():
            yield (names[one.id], uuids[id_]), 1


def _project_usage(state: State) -> Samples:
    projects, classes = state.cloud.projects, state.cloud.classes
    for project, class_id, used in state.cloud.usage:
        if project in projects and class_id in classes:
            yield (projects[project], classes[class_id]), used


METRICS: Mapping[str, Metric] = {
    'placement_providers': _single('Resource providers.', lambda state: len(state.providers)),
    'placement_consumers': _single(
        'Consumers that have allocations.', lambda state: state.cloud.consumers
    ),
    'placement_allocations': _single(
        'Allocations, each of one consumer, resource provider and resource class.',
        lambda state: state.cloud.allocations,
    ),
    'openstack_placement_resource_total': _of_inventories(
        'Total amount of a resource class that a resource provider has.',
        lambda one, _: one.total,
    ),
    'openstack_placement_resource_reserved': _of_inventories(
        'Amount of a resource class that is reserved on a resource provider.',
        lambda one, _: one.reserved,
    ),
    'openstack_placement_resource_allocation_ratio': _of_inventories(
        'Allocation ratio of a resource class on a resource provider.',
        lambda one, _: one.allocation_ratio,
    ),
    'openstack_placement_resource_usage': _of_inventories(
        'Amount of a resource class that is allocated on a resource provider.',
        lambda one, _: one.used,
    ),
    'openstack_placement_resource_generation': _of_inventories(
        'Generation of the resource provider.', lambda _, generation: generation
    ),
    'placement_resource_capacity': _of_inventories(
        'Capacity of a resource class on a resource provider: (total - reserved) * '
        'allocation_ratio, truncated to an integer.',
        # Truncated as in the response to GET /allocation_candidates.
        lambda one, _: int(one.capacity),
    ),
    'placement_provider_info': Metric(
        'A resource provider: its UUID, the name of its root provider, and whether the root is '
        'disabled.',
        ('hostname', 'uuid', 'root', 'disabled'),
        _info,
    ),
    'placement_provider_aggregate': Metric(
        'An aggregate of a resource provider.', ('hostname', 'aggregate'), _aggregates
    ),
    _PROJECT_USAGE: Metric(
        'Amount of a resource class that the consumers of a project use.',
        ('project', 'resourcetype'),
        _project_usage,
    ),
    _HEADROOM: Metric('Claims of a query that fit in addition to the present ones.', ('query',)),
    _CHECKED: Metric('Provider trees with allocations that were checked for a drain.'),
    _DRAINABLE: Metric('Provider trees with allocations whose consumers fit elsewhere.'),
}


@dataclass(frozen=True, slots=True)
class Collector:
    """Computes the metrics for prometheus_client.

    :ivar state: None if the database could not be read
    """

    state: State | None
    progress: Progress = silent

    def collect(self) -> Iterator[Any]:
        """Yield one metric after the other, because the samples of one metric need much memory."""
        # The library is an optional requirement.
        from prometheus_client.core import GaugeMetricFamily

        state = self.state
        text = 'Whether the exporter could read the database of Placement.'
        yield GaugeMetricFamily(UP, text, value=int(state is not None))
        if state is None:
            return
        with self.progress('Rendering metrics', len(METRICS)) as advance:
            for name, metric in METRICS.items():
                if name not in state.without:
                    family = GaugeMetricFamily(name, metric.help, labels=metric.labels)
                    samples = state.computed.get(name, ())
                    if metric.samples:
                        samples = sorted(metric.samples(state), key=lambda sample: sample[0])
                    for labels, value in samples:
                        family.add_metric(labels, value)
                    yield family
                advance(1)


def read(without: Collection[str] = (), progress: Progress = silent) -> Cloud:
    """Return the state of the cloud.

    :param without: the names of metrics that are not needed
    :raises Exception: the database is not available or has no tables; the class depends on the
        driver
    """
    with engine.snapshot() as conn:
        return cloud.read(conn, progress, with_usage=_PROJECT_USAGE not in without)


def headroom(queries: Mapping[str, Query[str]]) -> dict[str, Samples]:
    """Return the metric of the number of claims of each query that fit.

    :param queries: the queries by their names
    :raises CannotProceedError: a class or trait of a query does not exist
    """
    if not queries:
        return {}
    with engine.snapshot() as conn:
        found = cloud.read(conn, with_usage=False)
        with_ids = reading.with_ids(conn, found, queries.values())
    results = result.of_queries(found, queries, with_ids)
    return {_HEADROOM: [((one.query,), one.fits) for one in results]}


def drains() -> dict[str, Samples]:
    """Return the metrics of the number of trees with allocations, and of those that can be drained.

    :raises CannotProceedError: the consumer of an allocation does not exist
    """
    with engine.snapshot() as conn:
        results = all_trees(conn, cloud.read(conn, with_usage=False), silent)
    fits = sum(one.fits for one in results)
    return {_CHECKED: [((), len(results))], _DRAINABLE: [((), fits)]}
