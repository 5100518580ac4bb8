"""The command `placement-manage exporter`: the capacity of the cloud as metrics for Prometheus."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import math
import sys
from typing import Any

from oslo_config import cfg

from placement.admin import query_text, unlisted
from placement.admin.capacity_metrics import listen_address, model, reading
from placement.admin.failure import CannotProceedError
from placement.admin.headroom import reading as headroom_reading
from placement.candidates.model import Query
from placement.cmd import output, program

# Only this machine can connect to the default address.
ADDRESS = '127.0.0.1:9180'
CACHE_SECONDS = '30'
HEADROOM_SECONDS = '300'


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
    exporter.add_argument(
        '--without',
        metavar='NAME[,NAME...]',
        type=lambda text: [name.strip() for name in text.split(',')],
        default=[],
        help='leave out these metrics',
    )
    _add_computed(exporter)


def _add_computed(exporter: argparse.ArgumentParser) -> None:
    exporter.add_argument(
        '--headroom',
        metavar='NAME=QUERY',
        action='append',
        default=[],
        help='export how many more claims of a query of GET /allocation_candidates fit, as '
        f'{model.HEADROOM}{{query="NAME"}}; the option can be repeated',
    )
    exporter.add_argument(
        '--headroom-interval',
        metavar='SECONDS',
        default=HEADROOM_SECONDS,
        help='compute the headroom in the background, at most every SECONDS; default: %(default)s',
    )
    exporter.add_argument(
        '--drain-interval',
        metavar='SECONDS',
        help='export how many trees can be drained, as placement_trees_drainable, and compute it '
        'in the background, at most every SECONDS',
    )


def _export(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    address = listen_address.parse(arguments.listen)
    shown = _Shown(
        frozenset(arguments.without),
        _queries(arguments.headroom),
        _parse_seconds(arguments.headroom_interval, '--headroom-interval'),
        None
        if arguments.drain_interval is None
        else _parse_seconds(arguments.drain_interval, '--drain-interval'),
    )
    if unknown := sorted(shown.without - model.OPTIONAL):
        raise CannotProceedError(
            f'--without names metrics that do not exist or are required: {", ".join(unknown)}.'
        )
    keep = _parse_seconds(arguments.cache, '--cache')
    # The following modules need prometheus_client, which is an optional requirement.
    if arguments.once:
        _print_once(shown)
    else:
        _serve(address, keep, shown)
    return 0


@dataclass(frozen=True, slots=True)
class _Shown:
    """What to export.

    :ivar without: the names of metrics to leave out
    :ivar queries: the queries of `--headroom` by name
    :ivar interval: the value of `--headroom-interval` in seconds
    :ivar drain_interval: the value of `--drain-interval` in seconds; None without drains
    """

    without: frozenset[str]
    queries: Mapping[str, Query[str]]
    interval: float
    drain_interval: float | None

    def headroom(self) -> model.Headroom:
        """Return the number of claims of each query that fit."""
        return reading.headroom(self.queries) if self.queries else ()

    def drains(self) -> model.Drains | None:
        """Return the number of trees that can be drained; None without drains."""
        return None if self.drain_interval is None else reading.drains()


def _queries(arguments: Iterable[str]) -> dict[str, Query[str]]:
    """Return the queries of `--headroom` by name.

    :raises CannotProceedError: a query is not valid, or two have the same name
    """
    queries: dict[str, Query[str]] = {}
    for argument in arguments:
        name, separator, text = argument.partition('=')
        if not name or not separator:
            raise CannotProceedError(f'--headroom needs NAME=QUERY, but is {argument!r}.')
        if name in queries:
            raise CannotProceedError(f'Two queries of --headroom have the name {name!r}.')
        (queries[name],) = headroom_reading.parse([text], query_text.version('latest'))
    return queries


def _print_once(shown: _Shown) -> None:
    from placement.admin.capacity_metrics.exposition import Page

    cloud = reading.read(output.progress, shown.without, shown.headroom(), shown.drains())
    output.notify(unlisted.notice(cloud.unlisted))
    page = Page(cloud, output.progress, shown.without)
    sys.stdout.buffer.write(page.render().body)


def _serve(address: listen_address.ListenAddress, keep: float, shown: _Shown) -> None:
    from placement.admin.capacity_metrics.exporter import Exporter, Latest
    from placement.admin.capacity_metrics.server import Server

    headroom: Latest[model.Headroom] = Latest('headroom', shown.headroom, shown.interval, ())
    drains: Latest[model.Drains | None] = Latest(
        'number of trees that can be drained',
        shown.drains,
        math.inf if shown.drain_interval is None else shown.drain_interval,
        None,
    )

    def read() -> model.Cloud:
        return reading.read(without=shown.without, headroom=headroom.value(), drains=drains.value())

    server = Server(address, Exporter(read, keep, shown.without))
    headroom.value()
    drains.value()
    server.serve(lambda: output.notify(f'Serving metrics at {server.url}'))


def _parse_seconds(text: str, option: str) -> float:
    """Return the value of an option.

    :raises CannotProceedError: the value is not a number of seconds
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise CannotProceedError(f'{option} must be a number of seconds from 0, but is {text!r}.')
    return seconds
