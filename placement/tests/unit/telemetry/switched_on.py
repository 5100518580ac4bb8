"""Switch on the metrics of this process for one test."""

from pathlib import Path

import fixtures
from prometheus_client import parser, values

from placement import telemetry
from placement.tests.unit import edge

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class SwitchedOn(fixtures.Fixture):
    """Metrics that start at zero.

    :param directory: the directory for the metrics of several processes, if they are added up
    """

    def __init__(self, directory: Path | None = None) -> None:
        super().__init__()
        self._directory = directory

    def _setUp(self) -> None:
        value = None if self._directory is None else str(self._directory)
        self.useFixture(fixtures.EnvironmentVariable('PROMETHEUS_MULTIPROC_DIR', value))
        kind = values.get_value_class()
        self.useFixture(fixtures.MonkeyPatch('prometheus_client.values.ValueClass', kind))
        self.useFixture(fixtures.MonkeyPatch('placement.telemetry._application', None))
        for metric in telemetry.METRICS:
            self.useFixture(fixtures.MockPatchObject(metric, 'recorder', None))
        telemetry.switch_on()

    def scrape(self, query: str = '', **more: str) -> edge.Response:
        """Return the response of `/metrics`."""
        return edge.call(telemetry.serve_metrics, edge.environ(QUERY_STRING=query, **more))

    def samples(self) -> Samples:
        """Return the value of each metric except buckets, by name and labels."""
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for metric in parser.text_string_to_metric_families(self.scrape().body.decode())
            for sample in metric.samples
            if not sample.name.endswith('_bucket')
        }

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of a metric, None if it does not exist."""
        return self.samples().get((name, tuple(sorted(labels.items()))))

    def increased(self, name: str) -> dict[str, float]:
        """Return the values of a metric with one label by the value of the label, without zeros."""
        return {
            labels[0][1]: value
            for (metric, labels), value in self.samples().items()
            if metric == name and value
        }
