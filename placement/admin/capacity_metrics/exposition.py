"""Render the metrics with prometheus_client, which is an optional requirement.

Import this module only if the metrics are needed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
import gzip
import threading
from typing import Any, TypeVar

import prometheus_client
from prometheus_client import exposition
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from placement.admin.capacity_metrics import model
from placement.admin.capacity_metrics.model import Cloud, Gauge, ProviderInventory
from placement.admin.progress import Progress, silent

M = TypeVar('M', model.Gauge[Any], model.LabeledGauge)

# PERF: level 9 takes three times as long as level 1, and the result is 9 % smaller.
_GZIP_LEVEL = 1
# A page keeps at most this number of representations. Prometheus servers of different versions
# request different formats.
_REPRESENTATIONS = 4


@dataclass(frozen=True, slots=True)
class Representation:
    """The metrics in one format.

    :ivar encoding: the value of the header Content-Encoding; None without compression
    """

    content_type: str
    encoding: str | None
    body: bytes


class Page:
    """The metrics of one read of the database.

    The text is rendered for the first request in its format. Further requests share the text.

    :param cloud: what was read; None if the database could not be read
    :param without: the names of metrics to leave out
    """

    def __init__(
        self,
        cloud: Cloud | None,
        progress: Progress = silent,
        without: Collection[str] = (),
    ) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(_CloudCollector(cloud, progress, without))
        self._lock = threading.Lock()
        self._rendered: dict[tuple[str, bool], Representation] = {}

    def render(self, accept: str = '', accept_encoding: str = '') -> Representation:
        """Return the metrics in the format that a request prefers.

        :param accept: the header Accept of the request
        :param accept_encoding: the header Accept-Encoding of the request
        """
        encode, content_type = _encoder(accept)
        compress = exposition.gzip_accepted(accept_encoding)
        key = content_type, compress
        with self._lock:
            if key not in self._rendered:
                while len(self._rendered) >= _REPRESENTATIONS:
                    del self._rendered[next(iter(self._rendered))]
                body = encode(self._registry)
                if compress:
                    body = gzip.compress(body, _GZIP_LEVEL)
                encoding = 'gzip' if compress else None
                self._rendered[key] = Representation(content_type, encoding, body)
            return self._rendered[key]


class _CloudCollector(Collector):
    """Computes the metrics of a cloud."""

    def __init__(self, cloud: Cloud | None, progress: Progress, without: Collection[str]) -> None:
        self._cloud = cloud
        self._progress = progress
        self._without = without

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one metric after the other, because the samples of one metric need much memory."""
        yield GaugeMetricFamily(model.UP, model.UP_HELP, value=int(self._cloud is not None))
        if self._cloud is None:
            return
        for total in self._shown(model.OF_THE_CLOUD):
            yield GaugeMetricFamily(total.name, total.help, value=total.value(self._cloud))
        gauges, labeled = self._shown(model.OF_INVENTORIES), self._shown(model.LABELED)
        with self._progress('Rendering metrics', len(gauges) + len(labeled)) as advance:
            for gauge in gauges:
                yield _family(gauge, self._cloud.inventories)
                advance(1)
            for other in labeled:
                family = GaugeMetricFamily(other.name, other.help, labels=other.labels)
                for labels, value in other.samples(self._cloud):
                    family.add_metric(labels, value)
                yield family
                advance(1)

    def _shown(self, metrics: Iterable[M]) -> list[M]:
        return [one for one in metrics if one.name not in self._without]


def _family(
    gauge: Gauge[ProviderInventory], inventories: Iterable[ProviderInventory]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=model.LABELS)
    for one in inventories:
        family.add_metric((one.provider, one.resource_class), gauge.value(one))
    return family


def _encoder(accept: str) -> tuple[Callable[[prometheus_client.CollectorRegistry], bytes], str]:
    """Return the function that renders the format that a request prefers, and its content type."""
    try:
        return exposition.choose_encoder(accept)
    except TypeError:
        # The version in the header is not a number.
        return exposition.choose_encoder('')
