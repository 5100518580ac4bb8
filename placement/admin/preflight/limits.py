"""The limits of a database server, compared with the connections of all processes."""

from dataclasses import dataclass

from oslo_config import cfg

from placement.admin.preflight.model import Verdict, ok, warning
from placement.conf import database


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server.

    :param connections: the maximum number of connections, of all clients or of the user
    :param idle_seconds: the time after which the server closes an idle connection; 0: never
    :param idle_setting: the setting with this time
    """

    connections: int
    idle_seconds: int
    idle_setting: str


@dataclass(frozen=True, slots=True)
class Service:
    """All processes of the service.

    :param connections: the maximum number of connections of a process
    :param recycle_seconds: the maximum age of a connection; -1 if there is no limit
    :param machines: the number of machines
    :param processes: the number of processes on each machine
    :param threads: the number of threads of each process
    """

    connections: int
    recycle_seconds: int
    machines: int = 1
    processes: int = 1
    threads: int = 1


def service(config: cfg.ConfigOpts) -> Service:
    """Return what the configuration and the options of the command describe."""
    options = config.placement_database
    given = config.command
    connections = database.connections_of_process(options, given.threads)
    return Service(
        connections or 0,  # It is not None, because the threads limit the number.
        options.connection_recycle_time,
        given.machines,
        given.processes,
        given.threads,
    )


def judge(accepted: Limits, used: Service) -> list[Verdict]:
    """Judge whether the server accepts the connections of the service and keeps them open."""
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
    if used.machines * used.processes * used.connections > accepted.connections:
        verdicts.append(
            warning(
                f'{_describe(used)}, and the server accepts {accepted.connections}.',
                'Increase max_connections of the server and the limit of the user, or decrease '
                'max_pool_size and max_overflow in [placement_database], or the number of '
                'processes.',
            )
        )
    return verdicts or [ok(_note(accepted, used))]


def _describe(used: Service) -> str:
    """Return the sentence about the connections of the service, without its end."""
    processes = used.machines * used.processes
    if processes == 1:
        threads = '1 thread' if used.threads == 1 else f'{used.threads} threads'
        return f'A process with {threads} can open {used.connections} connections'
    return (
        f'{processes} processes (machines: {used.machines}, processes of each: {used.processes}, '
        f'threads of each: {used.threads}) can open {processes * used.connections} connections, '
        f'{used.connections} each'
    )


def _note(accepted: Limits, used: Service) -> str:
    return (
        f'The server accepts {accepted.connections} connections. {_describe(used)}: enough for '
        f'{accepted.connections // used.connections} processes.'
    )
