"""A service with a database of its own, for tests that talk to it as a client does."""

import collections
from collections.abc import Iterator
import contextlib
from typing import Any
import uuid

from oslotest import base
import requests
import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures.placement import PlacementFixture

_COUNTED = ('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'WITH')


class TestCase(base.BaseTestCase):
    """Gives each test an empty service; `ask` sends a request to it."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        self.service = self.useFixture(PlacementFixture())
        self.session = requests.Session()
        self.addCleanup(self.session.close)

    def ask(
        self, method: str, path: str, body: Any = None, version: str = '1.39'
    ) -> requests.Response:
        """Send a request as an admin who is a service too."""
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

    def sure(self, method: str, path: str, body: Any = None, version: str = '1.39') -> Any:
        """Send a request that has to succeed, and give the body of the answer."""
        answer = self.ask(method, path, body, version)
        self.assertLess(answer.status_code, 300, f'{method} {path}: {answer.text}')
        return answer.json() if answer.content else None

    def make_provider(
        self, name: str, inventory: dict[str, int] | None = None, parent: str | None = None
    ) -> str:
        """Make a provider with the totals that `inventory` names, and give its uuid."""
        body: dict[str, Any] = {'name': name, 'uuid': str(uuid.uuid4())}
        if parent:
            body['parent_provider_uuid'] = parent
        self.sure('POST', '/resource_providers', body)
        if inventory:
            records = {rc: {'total': total} for rc, total in inventory.items()}
            self.sure(
                'PUT',
                f'/resource_providers/{body["uuid"]}/inventories',
                {'resource_provider_generation': 0, 'inventories': records},
            )
        return str(body['uuid'])

    @contextlib.contextmanager
    def counted(self) -> Iterator[collections.Counter[str]]:
        """Count the statements that the service sends to its database."""
        counts: collections.Counter[str] = collections.Counter()

        def count(
            conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
        ) -> None:
            verb = statement.lstrip('( \n').split(None, 1)[0].upper()
            if verb in _COUNTED:
                counts[verb] += 1
                counts['all'] += 1

        engine: sa.Engine = db_api.get_placement_engine()
        event.listen(engine, 'before_cursor_execute', count)
        try:
            yield counts
        finally:
            event.remove(engine, 'before_cursor_execute', count)


def claim(
    allocations: dict[str, dict[str, int]],
    generation: int | None = None,
    project: str = 'project',
    user: str = 'user',
    consumer_type: str = 'INSTANCE',
) -> dict[str, Any]:
    """The body of PUT /allocations/{consumer} at microversion 1.38 and later."""
    return {
        'allocations': {rp: {'resources': amounts} for rp, amounts in allocations.items()},
        'project_id': project,
        'user_id': user,
        'consumer_generation': generation,
        'consumer_type': consumer_type,
    }
