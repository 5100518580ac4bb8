"""The command `placement-manage exporter`: the capacity of the cloud as metrics for Prometheus."""

import math
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import unlisted
from placement.admin.capacity_metrics import listen_address, reading
from placement.admin.failure import CannotProceedError
from placement.cmd import output, program

# Only this machine can connect to the default address.
ADDRESS = '127.0.0.1:9180'
CACHE_SECONDS = '30'


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    exporter = program.add_database_command(
        commands,
        'exporter',
        _export,
        'Export the capacity of the cloud as metrics for Prometheus. The command serves the '
        'metrics until it is stopped.',
        patient=False,
    )
    how = exporter.add_mutually_exclusive_group()
    how.add_argument(
        '--listen',
        metavar='ADDRESS:PORT',
        default=ADDRESS,
        help='where to serve /metrics; default: %(default)s',
    )
    how.add_argument(
        '--once', action='store_true', help='print the metrics once instead of serving them'
    )
    exporter.add_argument(
        '--cache',
        metavar='SECONDS',
        default=CACHE_SECONDS,
        help='serve metrics of up to this age without a new read; default: %(default)s',
    )


def _export(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    address = listen_address.parse(arguments.listen)
    keep = _parse_seconds(arguments.cache)
    # The following modules need prometheus_client, which is an optional requirement.
    if arguments.once:
        _print_once()
    else:
        _serve(address, keep)
    return 0


def _print_once() -> None:
    from placement.admin.capacity_metrics.exposition import Page

    cloud = reading.read(output.progress)
    output.notify(unlisted.notice(cloud.unlisted))
    sys.stdout.buffer.write(Page(cloud, output.progress).render().body)


def _serve(address: listen_address.ListenAddress, keep: float) -> None:
    from placement.admin.capacity_metrics.exporter import Exporter
    from placement.admin.capacity_metrics.server import Server

    server = Server(address, Exporter(reading.read, keep))
    server.serve(lambda: output.notify(f'Serving metrics at {server.url}'))


def _parse_seconds(text: str) -> float:
    """Return the value of `--cache`.

    :raises CannotProceedError: the value is not a number of seconds
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise CannotProceedError(f'--cache must be a number of seconds from 0, but is {text!r}.')
    return seconds
