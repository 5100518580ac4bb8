"""A Keystone in this process, and the middleware that uses it."""

from collections.abc import Callable
import copy
import datetime
import time
from typing import Any

import fixtures
from keystoneclient import access
from keystonemiddleware import auth_token
from oslo_config import cfg

from placement import auth
from placement.http import Application
from placement.tests.unit import edge

GROUP = 'keystone_authtoken'
_SERVER = 'keystonemiddleware.auth_token._identity.IdentityServer'
# In seconds.
CACHE_TIME = 300


def configuration(token_memory: int = 10, **options: Any) -> cfg.ConfigOpts:
    """Return the configuration of a service that uses Keystone.

    :param token_memory: the option `[api] token_memory`
    :param options: options of `[keystone_authtoken]`
    """
    config = edge.configuration()
    config.register_opts(dict(auth_token.list_opts())[GROUP], GROUP)
    config.set_override('auth_strategy', 'keystone', 'api')
    config.set_override('token_memory', token_memory, 'api')
    defaults = {'www_authenticate_uri': 'http://id', 'token_cache_time': CACHE_TIME}
    for name, value in (defaults | options).items():
        config.set_override(name, value, GROUP)
    return config


def middleware(application: Application, **options: Any) -> auth.KeystoneMiddleware:
    """Return the middleware of a new process; see `configuration` for the options."""
    return auth.KeystoneMiddleware(application, configuration(**options))


class Clock(fixtures.Fixture):
    """The clocks of the machine, which stand still unless the test advances them."""

    def _setUp(self) -> None:
        # Whole seconds can be added and compared exactly.
        self._time = float(int(time.time()))
        self._monotonic = 1000.0
        self.useFixture(fixtures.MonkeyPatch('time.time', lambda: self._time))
        self.useFixture(fixtures.MonkeyPatch('time.monotonic', lambda: self._monotonic))

    def advance(self, seconds: float) -> None:
        self._time += seconds
        self._monotonic += seconds

    def set(self, seconds: float) -> None:
        """Set the clock of the machine forward or back."""
        self._time += seconds


class Keystone(fixtures.Fixture):
    """Issues and validates tokens, in place of the server that keystonemiddleware uses.

    :ivar validated: the tokens of all validations
    :ivar before_response: called in each validation
    :ivar respond: returns the data of a token
    """

    def _setUp(self) -> None:
        self._tokens: dict[str, dict[str, Any]] = {}
        self.validated: list[str] = []
        self.before_response: Callable[[], object] = lambda: None
        self.respond: Callable[[str, bool], Any] = self.verify_token
        for name, replacement in (
            ('verify_token', lambda _server, *token, **options: self._validate(*token, **options)),
            ('invalidate', lambda _server: None),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'{_SERVER}.{name}', replacement))

    def issue(
        self, token: str, lifetime: float = 3600, roles: tuple[str, ...] = ('admin',), **more: Any
    ) -> str:
        """Issue a token for a user of its own, or replace a token.

        :param lifetime: in seconds
        :param more: other members of the token; None removes one
        """
        end = datetime.datetime.fromtimestamp(time.time() + lifetime, datetime.UTC)
        domain = {'id': 'default', 'name': 'Default'}
        data = {
            'methods': ['password'],
            'expires_at': end.isoformat(),
            'user': {'id': f'user-{token}', 'name': f'name-{token}', 'domain': domain},
            'project': {'id': f'project-{token}', 'name': 'service', 'domain': domain},
            'roles': [{'id': role, 'name': role} for role in roles],
            'catalog': [{'type': 'placement', 'name': 'placement', 'endpoints': []}],
            **more,
        }
        self._tokens[token] = {name: value for name, value in data.items() if value is not None}
        return token

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        del self._tokens[token]

    def _validate(self, token: str, allow_expired: bool = False) -> Any:
        self.validated.append(token)
        self.before_response()
        body = self.respond(token, allow_expired)
        return {'token': access.AccessInfo.factory(auth_token=token, body=body)}

    def verify_token(self, token: str, allow_expired: bool = False) -> dict[str, Any]:
        """Return the data of a token."""
        data = self._tokens.get(token)
        if data is None:
            raise auth_token.InvalidToken('unknown')
        end = datetime.datetime.fromisoformat(data['expires_at']).timestamp()
        if end <= time.time() and not allow_expired:
            raise auth_token.InvalidToken('expired')
        return {'token': copy.deepcopy(data)}
