"""A Keystone in this process, and the middleware that uses it."""

from collections.abc import Callable
import copy
import datetime
import time
from typing import Any

from keystonemiddleware import auth_token

from placement import auth
from placement.tests.unit import edge

# In seconds.
CACHE_TIME = 300


def middleware(
    application: Any, server: Any, store: Any = None, token_memory: int = 10, **options: Any
) -> auth.KeystoneMiddleware:
    """Return the middleware for Keystone, with an object in place of the server.

    :param server: its method `verify_token` validates tokens
    :param token_memory: the option `[api] token_memory`
    :param options: options of `[keystone_authtoken]`
    """
    config = edge.configuration()
    config.register_opts(dict(auth_token.list_opts())['keystone_authtoken'], 'keystone_authtoken')
    config.set_override('token_memory', token_memory, 'api')
    defaults = {'www_authenticate_uri': 'http://id', 'token_cache_time': CACHE_TIME}
    for name, value in (defaults | options).items():
        config.set_override(name, value, 'keystone_authtoken')
    layer = auth.KeystoneMiddleware(application, config, store)
    layer.guarded._identity_server = server
    return layer


class Clock:
    """The clocks of a process, in place of the module `time`."""

    perf_counter = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        # Whole seconds can be added and compared exactly.
        self._time = float(int(time.time()))
        self._monotonic = 1000.0

    def time(self) -> float:
        return self._time

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._time += seconds
        self._monotonic += seconds

    def set(self, seconds: float) -> None:
        """Set the clock of the machine forward or back."""
        self._time += seconds


class Keystone:
    """Issues and validates tokens.

    :ivar validated: the tokens of all validations
    :ivar before_response: called in each validation
    """

    def __init__(self, clock: Any = time) -> None:
        self._clock = clock
        self._tokens: dict[str, dict[str, Any]] = {}
        self.validated: list[str] = []
        self.before_response: Callable[[], None] = lambda: None

    def issue(
        self, token: str, lifetime: float = 3600, roles: tuple[str, ...] = ('admin',), **more: Any
    ) -> str:
        """Issue a token for a user of its own, or replace a token.

        :param lifetime: in seconds
        :param more: other members of the token
        """
        end = datetime.datetime.fromtimestamp(self._clock.time() + lifetime, datetime.UTC)
        domain = {'id': 'default', 'name': 'Default'}
        self._tokens[token] = {
            'methods': ['password'],
            'expires_at': end.isoformat(),
            'user': {'id': f'user-{token}', 'name': f'name-{token}', 'domain': domain},
            'project': {'id': f'project-{token}', 'name': 'service', 'domain': domain},
            'roles': [{'id': role, 'name': role} for role in roles],
            'catalog': [{'type': 'placement', 'name': 'placement', 'endpoints': []}],
            **more,
        }
        return token

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        del self._tokens[token]

    def verify_token(self, token: str, allow_expired: bool = False) -> dict[str, Any]:
        """Return the data of a token, as the client of keystonemiddleware does."""
        self.validated.append(token)
        self.before_response()
        data = self._tokens.get(token)
        if data is None:
            raise auth_token.InvalidToken('unknown')
        end = datetime.datetime.fromisoformat(data['expires_at']).timestamp()
        if end <= self._clock.time() and not allow_expired:
            raise auth_token.InvalidToken('expired')
        return {'token': copy.deepcopy(data)}
