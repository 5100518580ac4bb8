"""A second process of the service on the same database."""

import logging
import multiprocessing
from multiprocessing.connection import Connection
import traceback
from typing import Any

from oslo_config import cfg
from oslo_config import fixture as config_fixture
import sqlalchemy as sa
from sqlalchemy import event

from placement import conf, db_api, deploy
from placement.db import engine as db_engine
from placement.tests.documented import Documented
from placement.tests.functional.fixtures.placement import PlacementFixture
from placement.tests.functional.races import servers, testcase
from placement.tests.functional.races.writers import Request
from placement.tests.waiting import LONGEST


class SecondProcess:
    """A process of the service that this process sends requests to.

    :ivar sessions: the numbers that the database server gave to the connections of the process
    """

    def __init__(self, url: sa.URL) -> None:
        context = multiprocessing.get_context('spawn')
        self._pipe, pipe = context.Pipe()
        arguments = url.render_as_string(hide_password=False), pipe
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        pipe.close()
        self.sessions: set[int] = set()
        self._receive()

    def send(self, request: Request) -> testcase.Response:
        """Send a request and return the response."""
        self._pipe.send(request)
        response = self._receive()
        assert isinstance(response, testcase.Response)
        return response

    def close(self) -> None:
        """Stop the process."""
        self._pipe.close()
        self._process.join(LONGEST)

    def _receive(self) -> Any:
        """Return the next message that is not the number of a connection.

        :raises AssertionError: the process failed
        """
        while self._pipe.poll(LONGEST):
            message = self._pipe.recv()
            if not isinstance(message, int):
                assert not isinstance(message, str), message
                return message
            self.sessions.add(message)
        raise AssertionError('the second process does not respond')


def _serve(url: str, pipe: Connection) -> None:
    """Serve requests until the other end closes the pipe.

    The process sends the number of each connection to the database, the response to each request
    or a traceback, and None after everything else.
    """
    logging.disable(logging.WARNING)
    config = config_fixture.Config(cfg.ConfigOpts())
    service = PlacementFixture(
        conf_fixture=config, db=False, use_intercept=False, register_opts=False
    )
    with config:
        conf.register_opts(config.conf)
        config.config(group='placement_database', connection=url)
        with service:
            db_api.configure(config.conf)
            application = Documented(deploy.loadapp(config.conf))
            engine = db_api.get_placement_engine()
            server = servers.of(engine)

            def connected(dbapi_connection: Any, record: Any) -> None:
                server.set_up(dbapi_connection, record)
                pipe.send(server.session(dbapi_connection))

            pools = db_engine.get_pools()
            for own in (pools.reader, pools.writer):
                event.listen(own, 'connect', connected)
            pools.pool.dispose()  # so that all connections are set up
            pipe.send(None)
            while True:
                try:
                    request = pipe.recv()
                except EOFError:
                    return
                pipe.send(_handle(application, request))


def _handle(application: Any, request: Request) -> Any:
    try:
        return testcase.send(
            application, request.method, request.path, request.body, request.version
        )
    except Exception:
        return traceback.format_exc()
