"""A test case with its own service and database, which uses the service like a client."""

import collections
from collections.abc import Iterator
import contextlib
from typing import Any
import uuid

from oslotest import base
import requests

from placement import db_api
from placement.tests import statements, worlds
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures.placement import PlacementFixture


class TestCase(base.BaseTestCase):
    """Creates an empty service for each test; `send` and `send_ok` send requests to it."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        self.service = self.useFixture(PlacementFixture())
        self.session = requests.Session()
        self.addCleanup(self.session.close)

    def send(
        self, method: str, path: str, body: Any = None, version: str = 'latest'
    ) -> requests.Response:
        """Send a request with the roles admin and service, and return the response."""
        return self.session.request(
            method,
            self.service.endpoint + path,
            json=body,
            headers={
                'X-Auth-Token': self.service.token,
                'X-Roles': 'admin,service',
                'OpenStack-API-Version': f'placement {version}',
            },
        )

    def send_ok(self, method: str, path: str, body: Any = None, version: str = 'latest') -> Any:
        """Send a request, require that it succeeds, and return the body of the response."""
        response = self.send(method, path, body, version)
        self.assertLess(response.status_code, 300, f'{method} {path}: {response.text}')
        return response.json() if response.content else None

    def make_provider(
        self, name: str, inventory: dict[str, int] | None = None, parent: str | None = None
    ) -> str:
        """Create a provider and return its UUID.

        :param inventory: the total of each resource class
        :param parent: the UUID of the parent provider
        """
        body: dict[str, Any] = {'name': name, 'uuid': str(uuid.uuid4())}
        if parent:
            body['parent_provider_uuid'] = parent
        self.send_ok('POST', '/resource_providers', body)
        if inventory:
            inventories = {name: {'total': total} for name, total in inventory.items()}
            self.send_ok(
                'PUT',
                f'/resource_providers/{body["uuid"]}/inventories',
                {'resource_provider_generation': 0, 'inventories': inventories},
            )
        return str(body['uuid'])

    @contextlib.contextmanager
    def counted(self) -> Iterator[collections.Counter[str]]:
        """Count the statements of the service by verb. The key `all` has their total.

        The numbers are complete at the end of the `with` block.
        """
        counts: collections.Counter[str] = collections.Counter()
        with statements.recorded(db_api.get_placement_engine()) as recorded:
            yield counts
        counts.update(statement.verb for statement in recorded)
        counts['all'] = len(recorded)


class WorldTestCase(TestCase):
    """The service has the traits of the random worlds."""

    def setUp(self) -> None:
        super().setUp()
        for name in worlds.EXISTING_TRAITS:
            self.send_ok('PUT', f'/traits/{worlds.trait(name)}')


def claim(
    allocations: dict[str, dict[str, int]],
    generation: int | None = None,
    project: str = 'project',
    user: str = 'user',
    consumer_type: str = 'INSTANCE',
) -> dict[str, Any]:
    """Return the body of PUT /allocations/{consumer}, microversion 1.38 and later."""
    return {
        'allocations': {rp: {'resources': amounts} for rp, amounts in allocations.items()},
        'project_id': project,
        'user_id': user,
        'consumer_generation': generation,
        'consumer_type': consumer_type,
    }
