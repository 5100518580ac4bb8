"""The API without a database: a request is refused, or the service would read the database."""

import logging
from typing import Any

import fixtures
import orjson
from oslotest import base

from placement import auth, exception, handler, policy
from placement.microversion import MAX_VERSION, Version
from placement.tests.unit import edge


class AcceptedError(Exception):
    """The request has passed all checks that need no database."""


class ApiTestCase(base.BaseTestCase):
    """Requests with noauth2 and the default policy."""

    def setUp(self) -> None:
        super().setUp()
        for name in ('oslo_policy', 'placement'):
            self.useFixture(fixtures.FakeLogger(name, logging.INFO))
        config = edge.configuration()
        policy.reset()
        self.addCleanup(policy.reset)
        policy.init(config)
        self.useFixture(fixtures.MonkeyPatch('placement.db.engine.get_pools', self._accept))
        self.application = auth.NoAuthMiddleware(
            auth.ContextMiddleware(handler.PlacementHandler(), config)
        )

    @staticmethod
    def _accept() -> None:
        raise AcceptedError

    def send(
        self, method: str, path: str, version: Version = MAX_VERSION, body: Any = None, **more: str
    ) -> edge.Response:
        """Send a request as the user `service`, who may do everything."""
        text = b'' if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        user = {'HTTP_X_AUTH_TOKEN': 'service', 'HTTP_X_ROLES': 'service'}
        environ = edge.at(version, method=method, path=path, body=text, **user | more)
        return edge.call(self.application, environ)

    def problem(self, *args: Any, **more: Any) -> str | None:
        """Return why a request is invalid; None if it is valid."""
        try:
            response = self.send(*args, **more)
        except AcceptedError as accepted:
            # The service reads the provider in the path before it refuses an invalid body.
            refusal = accepted.__context__
            return str(refusal) if isinstance(refusal, exception.BadInput) else None
        self.assertEqual(400, response.status, response.body)
        return str(response.error['detail'])
