"""The command `placement-manage exporter`: the capacity of the cloud as metrics for Prometheus."""

from collections import ChainMap
from collections.abc import Callable, Sequence
import contextlib
import functools
import sys
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg

from placement.admin import exporter
from placement.admin.cloud import unlisted_notice
from placement.admin.console import CannotProceedError
from placement.admin.exporter import METRICS, Collector, Samples, State
from placement.admin.headroom import reading
from placement.cmd import output, program

_TEXT = (
    'Export the capacity of the cloud as metrics for Prometheus. The command serves the metrics '
    'until it is stopped.'
)
# Only this machine can connect to the default address.
ADDRESS = '127.0.0.1:9180'
_HOW = """
--listen ADDRESS:PORT
    where to serve /metrics; default: %(default)s
--once
    print the metrics once instead of serving them
"""
_OPTIONS = """
--cache SECONDS
    serve metrics of up to this age without a new read; default: %(default)s
--without NAME[,NAME...]
    leave out these metrics
--headroom NAME=QUERY
    export how many more claims of a query of GET /allocation_candidates fit, as
    placement_headroom{query="NAME"}; the option can be repeated
--headroom-interval SECONDS
    compute the headroom in the background, at most every SECONDS; default: %(default)s
--drain-interval SECONDS
    export how many trees can be drained, as placement_trees_drainable, and compute it in the
    background, at most every SECONDS
"""

# What is computed in the background, a function that returns the samples by the name of the metric,
# and the number of seconds between two computations.
Computation = tuple[str, Callable[[], dict[str, Samples]], float]


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'exporter', _export, _TEXT, patient=False)
    how = parser.add_mutually_exclusive_group()
    program.add_options(how, _HOW, listen={'default': ADDRESS})
    seconds = program.number(0, 999_999_999)
    program.add_options(
        parser,
        _OPTIONS,
        cache={'type': seconds, 'default': 30},
        without={'type': program.words, 'default': []},
        headroom={'action': 'append', 'default': []},
        headroom_interval={'type': seconds, 'default': 300},
        drain_interval={'type': seconds},
    )


def _export(config: cfg.ConfigOpts) -> int:
    options = config.category
    address = _address(options.listen)
    queries = reading.parse_named(options.headroom)
    if unknown := sorted({*options.without} - METRICS.keys()):
        raise CannotProceedError(
            f'--without names metrics that do not exist or are required: {", ".join(unknown)}.'
        )
    computations = [('headroom', lambda: exporter.headroom(queries), options.headroom_interval)]
    if options.drain_interval is not None:
        what = 'number of trees that can be drained'
        computations.append((what, exporter.drains, options.drain_interval))
    if options.once:
        _print_once(options, computations)
    else:
        _serve(options, computations, *address)
    return 0


def _print_once(options: Any, computations: Sequence[Computation]) -> None:
    # The library is an optional requirement.
    import prometheus_client

    computed = ChainMap(*(compute() for _, compute, _ in computations))
    read = exporter.read(options.without, output.progress)
    output.notify(unlisted_notice(read.unlisted))
    collector = Collector(State(read, computed, options.without), output.progress)
    # The functions of the library need only the method `collect` of a registry.
    sys.stdout.buffer.write(prometheus_client.generate_latest(collector))


def _serve(options: Any, computations: Sequence[Computation], host: str, port: int) -> None:
    from placement.admin import serving

    shared = [
        serving.Shared(functools.partial(serving.samples, what, compute), interval)
        for what, compute, interval in computations
    ]

    def computed() -> ChainMap[str, Samples]:
        return ChainMap(*(one.refreshed() or {} for one in shared))

    def read() -> State:
        return State(exporter.read(options.without), computed(), options.without)

    def ready(url: str) -> None:
        # The first request finds the results, if their computation does not take long.
        computed()
        output.notify(f'Serving metrics at {url}')

    serving.serve(serving.Application(read, options.cache), host, port, ready)


def _address(text: str) -> tuple[str, int]:
    """Return the host and the port of the option `--listen`.

    :raises CannotProceedError: the text is malformed
    """
    with contextlib.suppress(ValueError):
        parts = urlsplit(f'//{text}')
        if parts.netloc == text and text.isascii() and parts.hostname and parts.port is not None:
            return parts.hostname, parts.port
    raise CannotProceedError(
        f'{text!r} is not an address and a port to listen on, such as 127.0.0.1:9180 or [::1]:9180.'
    )
