"""The metrics of a service with two processes, as Prometheus reads them."""

from collections import Counter
from collections.abc import Iterator
from concurrent import futures
import functools
import re
import subprocess
from typing import Any
import uuid

from prometheus_client import parser
import requests

from placement.tests import where
from placement.tests.functional.base import claim
from placement.tests.functional.faults import machines
from placement.tests.functional.web import base, commands, prometheus_pages
from placement.tests.functional.web.base import HEADERS
from placement.tests.waiting import LONGEST, wait_until

PROVIDER = str(uuid.UUID(int=1))
TRAITS = f'/resource_providers/{PROVIDER}/traits'
CANDIDATES = '/allocation_candidates?resources=VCPU:1'
RULES = prometheus_pages.RULES / 'placement-service.yaml'
COUNT = 'placement_http_request_duration_seconds_count'
IN_PROGRESS = 'placement_http_requests_in_progress'


@where.at_night('The servers take minutes.')
class TwoProcessesTest(base.TestCase):
    def start(self) -> None:
        """Start the service with two processes, and create a provider with 50 VCPU."""
        directory = str(self.folder / 'metrics')
        settings = {'OS_METRICS__ENABLED': 'true', 'PROMETHEUS_MULTIPROC_DIR': directory}
        self.serve(functools.partial(commands.uwsgi, processes=2), settings)
        # The keys are the route, the method, and the status class.
        self.expected: Counter[tuple[str, str, str]] = Counter()
        self.send('/resource_providers', 'POST', '', {'name': 'one', 'uuid': PROVIDER})
        body = {'resource_provider_generation': 0, 'inventories': {'VCPU': {'total': 50}}}
        route, path = (f'/resource_providers/{one}/inventories' for one in ('{uuid}', PROVIDER))
        self.assertEqual(200, self.send(route, 'PUT', path, body))

    def send(self, route: str, method: str, path: str, body: Any = None, **headers: str) -> int:
        """Send a request, count the response, and return its status.

        :param route: the path template that the metrics should contain
        :param path: the path, if it differs from the route
        """
        url = f'http://127.0.0.1:{self.worker.port}{path or route}'
        response = requests.request(
            method, url, json=body, headers={**HEADERS, **headers}, timeout=LONGEST
        )
        label = 'other' if method == 'BREW' else method
        self.expected[route, label, f'{response.status_code // 100}xx'] += 1
        return response.status_code

    def send_many(self) -> Counter[int]:
        """Send many requests concurrently, and return the statuses of the claims."""
        with futures.ThreadPoolExecutor(8) as pool:
            claims = [pool.submit(self.claim, n) for n in range(60)]
            others = [
                pool.submit(self.send, *arguments, **headers)
                for arguments, headers in (
                    (('/', 'GET', ''), {}),
                    (('/traits/{name}', 'PUT', '/traits/CUSTOM_A'), {}),
                    (('/resource_providers/{uuid}/traits', 'GET', TRAITS), {}),
                    (('/allocation_candidates', 'GET', CANDIDATES), {}),
                    (('unmatched', 'GET', f'/nowhere/{PROVIDER}'), {}),
                    (('/traits/{name}', 'BREW', '/traits/CUSTOM_A'), {}),
                    (('/usages', 'GET', ''), {'OpenStack-API-Version': 'placement 9.9'}),
                )
                for _ in range(10)
            ]
        for sent in others:
            sent.result()
        return Counter(sent.result() for sent in claims)

    def claim(self, number: int) -> int:
        path = f'/allocations/{uuid.UUID(int=1000 + number)}'
        body = claim({PROVIDER: {'VCPU': 1}})
        return self.send('/allocations/{consumer_uuid}', 'PUT', path, body)

    def scrape(self) -> str:
        response = requests.get(f'http://127.0.0.1:{self.worker.port}/metrics', timeout=LONGEST)
        self.assertEqual(200, response.status_code, response.text)
        return response.text

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for metric in parser.text_string_to_metric_families(self.scrape()):
            for sample in metric.samples:
                yield sample.name, sample.labels, sample.value

    def requests(self) -> dict[tuple[str, str, str], float]:
        """Return the numbers of requests in the metrics."""
        return {
            (labels['route'], labels['method'], labels['status']): value
            for name, labels, value in self.samples()
            if name == COUNT
        }

    def value(self, name: str, **wanted: str) -> float:
        (value,) = (v for metric, labels, v in self.samples() if (metric, labels) == (name, wanted))
        return value

    def test_the_metrics_equal_what_the_client_counted(self) -> None:
        promtool = commands.program('promtool')
        self.start()
        self.assertEqual({204: 50, 409: 10}, self.send_many())
        self.check_metrics()
        checked = subprocess.run(
            (promtool, 'check', 'metrics'), input=self.scrape(), capture_output=True, text=True
        )
        self.assertEqual((0, '', ''), (checked.returncode, checked.stdout, checked.stderr))
        self.check_prometheus()

    def check_metrics(self) -> None:
        self.assertEqual(self.expected, self.requests())
        self.assertEqual(10, self.value('placement_claims_refused_total', reason='capacity'))
        self.assertEqual(10, self.value('placement_candidates_returned_count'))
        self.assertEqual(0, self.value(IN_PROGRESS))
        self.assertEqual(0, self.value('placement_database_connections_in_use'))
        # The name or the UUID of no object is in a label.
        self.assertNotIn(PROVIDER, self.scrape())
        self.assertNotIn('CUSTOM_A', self.scrape())

    def check_prometheus(self) -> None:
        """Check that Prometheus reads the metrics, and evaluates the queries and the alerts."""
        command = functools.partial(
            commands.prometheus, targets=[self.worker.port], folder=self.folder, rules=[RULES]
        )
        self.monitor = machines.Worker('', command, log=self.folder / 'prometheus.log')
        self.addCleanup(self.monitor.stop)
        query = f'sum by (route, method, status) ({COUNT})'
        wait_until(lambda: self.query(query), 'Prometheus has not read the metrics')
        read = {
            (one['metric']['route'], one['metric']['method'], one['metric']['status']): int(
                one['value'][1]
            )
            for one in self.query(query)
        }
        self.assertEqual(self.expected, read)
        for query in prometheus_pages.blocks('metrics', 'promql'):
            # A rate needs two samples.
            wait_until(lambda query=query: self.query(query), f'no result: {query}')
        self.check_alerts()

    def check_alerts(self) -> None:
        wait_until(
            lambda: self.alerts() and {one['health'] for one in self.alerts().values()} == {'ok'}
        )
        # While the machine is busy, a scrape can exceed its timeout of a second.
        wait_until(lambda: {one['state'] for one in self.alerts().values()} == {'inactive'})
        used = set(re.findall(r'placement_[a-z_]+', RULES.read_text()))
        self.assertEqual(set(), used - {*self.get('label/__name__/values')})
        self.worker.stop()
        wait_until(lambda: self.alerts()['PlacementDown']['state'] == 'pending')

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of a response of Prometheus; None while it starts."""
        url = f'http://127.0.0.1:{self.monitor.port}/api/v1/{path}'
        response = requests.get(url, parameters, timeout=LONGEST)
        return response.json()['data'] if response.ok else None

    def query(self, text: str) -> list[dict[str, Any]]:
        data = self.get('query', query=text)
        return data['result'] if data else []

    def alerts(self) -> dict[str, dict[str, Any]]:
        return {
            rule['name']: rule for group in self.get('rules')['groups'] for rule in group['rules']
        }
