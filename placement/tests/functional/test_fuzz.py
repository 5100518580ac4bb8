"""Random requests of each OpenAPI document have only responses that the document describes.

Schemathesis generates the requests. Most of them contain only values of a small cloud, so that many
succeed. The others contain any values that the document allows or does not allow.
"""

import copy
import json
import logging
import random
import re
from typing import Any

import fixtures
import hypothesis
from hypothesis import strategies
from oslotest import base
import requests
import schemathesis

from api_reference.openapi import files
from placement import deploy
from placement.microversion import VERSIONS
from placement.tests import where
from placement.tests.documented import Documented
from placement.tests.functional.fixtures import placement as placement_fixture
from placement.tests.functional.invalid_requests import generated, known
from placement.tests.properties import REPEATABLE

SEED = 13
# The number of requests for an operation in one round is its weight.
ROUNDS = 6
URL = 'http://placement'
# Headers that a request has in place of the usual ones; empty headers are not sent.
VARIANTS: list[dict[str, str]] = [
    *({},) * 15,
    {'Accept': 'text/html'},
    {'Accept': 'text/plain'},
    {'Accept': 'text/html, application/json;q=0.5'},
    {'Content-Type': 'text/plain'},
    {'X-Auth-Token': ''},
    {'X-Auth-Token': 'user', 'X-Roles': 'reader'},
]
UUID = re.compile('[0-9a-f-]{36}')
# Member of a body -> the collection with the object that has the generation, and its member there.
GENERATIONS = {
    'resource_provider_generation': ('/resource_providers', 'generation'),
    'consumer_generation': ('/allocations', 'consumer_generation'),
}


@where.at_night('The documents are compared with each response of the API tests, too.')
@where.only_on('sqlite', reason='The documents do not depend on the database.')
class FuzzTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Thousands of requests produce long logs, so only errors are captured.
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        service = self.useFixture(placement_fixture.PlacementFixture(use_intercept=False))
        application = Documented(deploy.loadapp(service.conf_fixture.conf))
        self.useFixture(placement_fixture.Interception(application, URL))
        self.client = requests.Session()

    def test_all_responses_conform_to_the_documents(self) -> None:
        for version in VERSIONS:
            with self.subTest(version):
                statuses = self.statuses(version)
                self.assertEqual('', self.log.output)
                # Requests succeed, and they fail for different reasons.
                self.assertLessEqual({200, 201, 400, 404, 409}, statuses)

    def statuses(self, version: str) -> set[int]:
        """Send random requests of a microversion, and return the statuses of the responses."""
        rng = random.Random(f'{SEED} {version}')
        operations, found = weighted_strategies(files.content(version)), set()
        for _ in range(ROUNDS):
            for request in generated.cloud():  # a request for an existing row fails harmlessly
                self.send(request.method, request.path, request.version, data=request.body)
            rng.shuffle(operations)
            for cases, weight in operations:

                @hypothesis.settings(REPEATABLE, derandomize=False, max_examples=weight)
                @hypothesis.seed(rng.getrandbits(32))
                @hypothesis.given(cases, strategies.sampled_from(VARIANTS))
                def send(case: Any, variant: dict[str, str]) -> None:
                    if isinstance(case.body, (dict, list)):
                        owner = next(iter(case.path_parameters.values()), '')
                        case.body = self.with_generations(case.body, owner)
                    headers = {**usual_headers(version), **variant}
                    sent = {name: value for name, value in headers.items() if value}
                    response = case.call(base_url=URL, session=self.client, headers=sent)
                    found.add(response.status_code)

                send()
        return found

    def send(self, method: str, path: str, version: str, **options: Any) -> requests.Response:
        headers = {**usual_headers(version), 'Content-Type': 'application/json'}
        return self.client.request(method, URL + path, headers=headers, **options)

    def with_generations(self, value: Any, owner: str) -> Any:
        """Return a body in which the current generations replace the values of `known.CURRENT`.

        :param owner: the UUID of the provider or the consumer whose generations the value contains
        """
        if isinstance(value, list):
            return [self.with_generations(item, owner) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.generation(key, owner)
            if item in known.CURRENT and key in GENERATIONS
            else self.with_generations(item, key if UUID.fullmatch(key) else owner)
            for key, item in value.items()
        }

    def generation(self, key: str, owner: str) -> Any:
        path, member = GENERATIONS[key]
        response = self.send('GET', f'{path}/{owner}', 'latest')
        return json.loads(response.content).get(member) if response.ok else 0


def usual_headers(version: str) -> dict[str, str]:
    return {
        'X-Auth-Token': 'admin',
        'X-Roles': 'admin,service',
        'OpenStack-API-Version': f'placement {version}',
    }


def weighted_strategies(document: Any) -> list[tuple[strategies.SearchStrategy[Any], int]]:
    """Return a strategy for the requests of each operation, and the weight of the operation.

    An operation with a body or with many parameters has a high weight.
    """
    # Schemathesis would change the headers that all requests have in common.
    document = copy.deepcopy(document)
    del document['security']
    for operations in document['paths'].values():
        for operation in operations.values():
            operation['parameters'] = [one for one in operation['parameters'] if 'in' in one]
    everything = schemathesis.openapi.from_dict(document)
    restricted = schemathesis.openapi.from_dict(known.restricted(document))
    return [
        (mixed(restricted[path][method], everything[path][method]), weight(operation))
        for path, methods in document['paths'].items()
        for method, operation in methods.items()
    ]


def mixed(restricted: Any, everything: Any) -> strategies.SearchStrategy[Any]:
    valid, invalid = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    kinds = [
        *(restricted.as_strategy(generation_mode=valid),) * 6,
        everything.as_strategy(generation_mode=valid),
        everything.as_strategy(generation_mode=invalid),
        restricted.as_strategy(generation_mode=invalid),
    ]
    return strategies.sampled_from(kinds).flatmap(lambda kind: kind)


def weight(operation: Any) -> int:
    in_query = [parameter for parameter in operation['parameters'] if parameter['in'] == 'query']
    return 1 + len(in_query) + 3 * ('requestBody' in operation)
