"""The limits of a database server, compared with the connection pool of a process."""

from dataclasses import dataclass

from oslo_config import cfg

from placement.admin.preflight.model import Verdict, ok, warning

# The defaults of SQLAlchemy.
POOL_SIZE = 5
MAX_OVERFLOW = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server.

    :param connections: the maximum number of connections of all clients
    :param idle_seconds: the time after which the server closes an idle connection; 0: never
    :param idle_setting: the setting with this time
    """

    connections: int
    idle_seconds: int
    idle_setting: str


@dataclass(frozen=True, slots=True)
class Pool:
    """The connection pool of a process of the service.

    :param connections: the maximum number of connections; None if there is no limit
    :param recycle_seconds: the maximum age of a connection; -1 if there is no limit
    """

    connections: int | None
    recycle_seconds: int


def pool(config: cfg.ConfigOpts) -> Pool:
    """Return the connection pool that the configuration describes."""
    options = config.placement_database
    size = POOL_SIZE if options.max_pool_size is None else options.max_pool_size
    overflow = MAX_OVERFLOW if options.max_overflow is None else options.max_overflow
    unlimited = size == 0 or overflow < 0
    return Pool(None if unlimited else size + overflow, options.connection_recycle_time)


def judge(accepted: Limits, used: Pool) -> list[Verdict]:
    """Judge whether the server accepts the connections of a process and keeps them open."""
    verdicts = []
    if accepted.idle_seconds and not 0 <= used.recycle_seconds < accepted.idle_seconds:
        verdicts.append(
            warning(
                f'The server closes idle connections after {accepted.idle_seconds} seconds '
                f'({accepted.idle_setting}), and the service keeps them for '
                f'{used.recycle_seconds} seconds.',
                'Set [placement_database] connection_recycle_time to a smaller value than '
                f'{accepted.idle_setting}.',
            )
        )
    if used.connections is not None and used.connections > accepted.connections:
        verdicts.append(
            warning(
                f'A process can open {used.connections} connections, and the server accepts '
                f'{accepted.connections}.',
                'Increase max_connections of the server, or decrease max_pool_size and '
                'max_overflow in [placement_database].',
            )
        )
    return verdicts or [ok(_note(accepted, used))]


def _note(accepted: Limits, used: Pool) -> str:
    if used.connections is None:
        return (
            f'The server accepts {accepted.connections} connections. The pool of a process has '
            'no limit.'
        )
    return (
        f'The server accepts {accepted.connections} connections, and a process opens up to '
        f'{used.connections}: enough for {accepted.connections // used.connections} processes.'
    )
