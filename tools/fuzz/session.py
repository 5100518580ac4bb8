"""Sends random requests to a service, and compares the responses with a document."""

from collections import Counter
import copy
from dataclasses import dataclass, field
import random
import re
from typing import Any
from urllib.parse import urlsplit

import hypothesis
from hypothesis import strategies
import requests
import schemathesis

from placement.tests import wsgi_client
from placement.tests.functional.invalid_requests import generated
from tools.fuzz import conformance, known
from tools.fuzz.conformance import Case, Document

# Hypothesis does not repeat or shrink a failing request: `Session` records it and continues.
_SETTINGS = hypothesis.settings(
    phases=[hypothesis.Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)
# Random requests delete rows of the cloud. After this number of requests, the cloud is restored.
_RESTORE_INTERVAL = 500
# The number of requests for an operation in one round is this number times its weight.
_ROUND = 8
# Headers that a request has in place of the usual ones; empty headers are not sent.
_VARIANTS: list[dict[str, str]] = [
    *({},) * 15,
    {'Accept': 'text/html'},
    {'Accept': 'text/plain'},
    {'Accept': 'text/html, application/json;q=0.5'},
    {'Content-Type': 'text/plain'},
    {'X-Auth-Token': ''},
    {'X-Auth-Token': 'user', 'X-Roles': 'reader'},
]
_UUID = re.compile('[0-9a-f-]{36}')


@dataclass(frozen=True, slots=True)
class Problem:
    """A response that differs from the document.

    :ivar operation: the method and the path of the operation
    :ivar description: the difference; the first line is its kind
    :ivar command: a curl command that sends the request
    """

    operation: str
    description: str
    command: str


@dataclass(slots=True)
class Result:
    """The responses to the requests of a session.

    :ivar statuses: the number of responses by operation and status
    :ivar problems: the first problem of each kind, by operation and kind
    """

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    problems: dict[tuple[str, str], Problem] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return self.statuses.total()

    def by_status(self) -> Counter[int]:
        """Return the number of responses by status."""
        total: Counter[int] = Counter()
        for (_, status), number in self.statuses.items():
            total[status] += number
        return total


class Session:
    """Sends random requests for the operations of one document to a service.

    :param document: the OpenAPI document of a microversion
    :param url: the URL at which the service is mounted
    """

    def __init__(self, document: Document, url: str) -> None:
        self._document = document
        self._version: str = document['info']['version']
        self._url = url
        self._client = requests.Session()
        self._client.trust_env = False  # no proxy: the service is on this machine
        self.result = Result()

    def operations(self) -> set[str]:
        """Return the method and the path of each operation of the document."""
        return {
            f'{method.upper()} {path}'
            for path, methods in self._document['paths'].items()
            for method in methods
        }

    def run(self, count: int, seed: int) -> Result:
        """Send random requests, which depend on the seed, the microversion and the responses.

        :param count: the number of requests. It is approximate: each operation gets a whole number,
            and hypothesis generates no request twice in a row of requests for one operation
        """
        rng = random.Random(f'{seed} {self._version}')
        operations = _operations(self._document)
        total = sum(weight for _, weight in operations)
        rounds = max(1, round(count / total / _ROUND))
        self._restore_cloud()
        for _ in range(rounds):
            rng.shuffle(operations)
            for requests_of, weight in operations:
                self._send_all(requests_of, max(1, count * weight // (total * rounds)), rng)
        return self.result

    def _send_all(
        self, cases: strategies.SearchStrategy[Case], count: int, rng: random.Random
    ) -> None:
        @hypothesis.settings(_SETTINGS, max_examples=count)
        @hypothesis.seed(rng.getrandbits(32))
        @hypothesis.given(cases, strategies.sampled_from(_VARIANTS))
        def send(case: Case, variant: dict[str, str]) -> None:
            headers = {**_headers(self._version), **variant}
            self._send(case, {name: value for name, value in headers.items() if value})

        send()

    def _send(self, case: Case, headers: dict[str, str]) -> None:
        if self.result.requests % _RESTORE_INTERVAL == _RESTORE_INTERVAL - 1:
            self._restore_cloud()
        owner = next(iter(case.path_parameters.values()), '')
        if isinstance(case.body, (dict, list)):
            case.body = self._with_generations(case.body, owner)
        response = case.call(base_url=self._url, session=self._client, headers=headers)
        operation = f'{case.method} {case.path}'
        self.result.statuses[operation, response.status_code] += 1
        for description in conformance.problems(case, response, urlsplit(self._url).path):
            kind = description.partition('\n')[0]
            command = case.as_curl_command(headers=headers, base_url=self._url)
            self.result.problems.setdefault(
                (operation, kind), Problem(operation, description, command)
            )

    # The state of the service

    def _restore_cloud(self) -> None:
        """Create the missing rows of the cloud; requests for existing rows fail harmlessly."""
        for request in generated.cloud():
            self._request(request)

    def _with_generations(self, value: Any, owner: str) -> Any:
        """Return a body in which the current generations replace the values of `known.CURRENT`.

        :param owner: the UUID of the provider or the consumer whose generations the value contains
        """
        if isinstance(value, list):
            return [self._with_generations(item, owner) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self._generation(key, owner)
            if item in known.CURRENT and key in _GENERATIONS
            else self._with_generations(item, key if _UUID.fullmatch(key) else owner)
            for key, item in value.items()
        }

    def _generation(self, key: str, owner: str) -> Any:
        path, member = _GENERATIONS[key]
        response = self._request(wsgi_client.Request('GET', f'{path}/{owner}'))
        return response.json().get(member) if response.ok else 0

    def _request(self, request: wsgi_client.Request) -> requests.Response:
        headers = {**_headers(request.version), 'Content-Type': 'application/json'}
        return self._client.request(
            request.method, f'{self._url}{request.path}', data=request.body, headers=headers
        )


# Member of a body -> the collection with the object that has the generation, and its member there.
_GENERATIONS = {
    'resource_provider_generation': ('/resource_providers', 'generation'),
    'consumer_generation': ('/allocations', 'consumer_generation'),
}


def _headers(version: str) -> dict[str, str]:
    return {
        'X-Auth-Token': 'admin',
        'X-Roles': 'admin,service',
        'OpenStack-API-Version': f'placement {version}',
    }


def _operations(document: Document) -> list[tuple[strategies.SearchStrategy[Case], int]]:
    """Return a strategy for the requests of each operation, and the weight of the operation.

    Most requests contain only values of the cloud. The others contain any values that the document
    allows or does not allow. An operation with a body or with many parameters has a high weight.
    """
    document = _without_headers(document)
    config = schemathesis.Config.from_dict({'output': {'sanitization': {'enabled': False}}})
    everything = schemathesis.openapi.from_dict(document, config=config)
    restricted = schemathesis.openapi.from_dict(known.restricted(document), config=config)
    return [
        (_requests(restricted[path][method], everything[path][method]), _weight(operation))
        for path, methods in document['paths'].items()
        for method, operation in methods.items()
    ]


def _without_headers(document: Document) -> Document:
    """Return a copy of a document without the headers that all requests have in common.

    Otherwise, schemathesis would omit or change them to test invalid values.
    """
    result = copy.deepcopy(document)
    del result['security']
    for operations in result['paths'].values():
        for operation in operations.values():
            operation['parameters'] = [one for one in operation['parameters'] if 'in' in one]
    return result


def _weight(operation: Document) -> int:
    parameters = operation['parameters']
    in_query = [parameter for parameter in parameters if parameter.get('in') == 'query']
    return 1 + len(in_query) + 3 * ('requestBody' in operation)


def _requests(restricted: Any, everything: Any) -> strategies.SearchStrategy[Case]:
    positive, negative = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    likely = restricted.as_strategy(generation_mode=positive)
    kinds = [
        *(likely,) * 6,
        everything.as_strategy(generation_mode=positive),
        everything.as_strategy(generation_mode=negative),
        restricted.as_strategy(generation_mode=negative),
    ]
    return strategies.sampled_from(kinds).flatmap(lambda kind: kind)
