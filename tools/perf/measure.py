"""Measure scenarios on a world in new processes, so that each process has its own memory peak."""

from collections.abc import Callable, Sequence
import concurrent.futures
import contextlib
from dataclasses import dataclass
import multiprocessing
from pathlib import Path
import resource
import statistics
import sys
import time
from typing import Any

from tools.perf import loading, scenarios, worlds
from tools.perf.service import Service

WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Repetition:
    """The number of repetitions of each scenario.

    :param rounds: the maximum number of repetitions
    :param seconds: the time after which no further repetition starts
    """

    rounds: int = 7
    seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Result:
    """The cost of a scenario; `ms` and `cpu_ms` are medians over all repetitions."""

    world: str
    hosts: int
    devices: int
    scenario: str
    statements: int
    rows: int
    bytes: int
    ms: float
    least_ms: float
    cpu_ms: float  # CPU time of this process, without the database server
    peak_mib: float
    rounds: int


def in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process and return its result."""
    context = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


@dataclass(frozen=True, slots=True)
class Loading:
    """The cost of filling a database with a world."""

    seconds: float
    peak_mib: float  # memory of the process that loads the rows
    database_mib: float | None  # None if the engine does not report it


def build(url: str, world: worlds.World, erase: bool) -> Loading:
    """Create the tables in a database, fill the tables with a world, and return the cost."""
    service = Service(url)
    begin = time.monotonic()
    loading.build(service.engine, world, erase)
    seconds = time.monotonic() - begin
    result = Loading(seconds, peak_mib(), loading.size_mib(service.engine))
    service.engine.dispose()
    return result


def measure(
    url: str, world: worlds.World, names: Sequence[str], repetition: Repetition
) -> list[Result]:
    """Measure the scenarios with the given names on an existing world."""
    selected = [one for one in scenarios.SCENARIOS if one.kind == world.kind and one.name in names]
    return measure_all(url, world, selected, repetition)


def measure_paths(
    url: str, world: worlds.World, paths: dict[str, str], repetition: Repetition
) -> list[Result]:
    """Measure GET requests on an existing world.

    :param paths: the paths by scenario name
    """
    selected = [scenarios.read(name, path, world.kind) for name, path in paths.items()]
    return measure_all(url, world, selected, repetition)


def measure_all(
    url: str, world: worlds.World, selected: Sequence[scenarios.Scenario], repetition: Repetition
) -> list[Result]:
    """Measure scenarios on an existing world."""
    service = Service(url)
    results = [_measure(service, world, one, repetition) for one in selected]
    service.engine.dispose()
    return results


def _measure(
    service: Service, world: worlds.World, scenario: scenarios.Scenario, repetition: Repetition
) -> Result:
    for number in range(WARM_UP):
        for request in scenario.prepare(service.send, world, number):
            service.send(request)
    requests = scenario.prepare(service.send, world, WARM_UP)
    with service.metered() as cost:
        size = sum(len(service.send(request)) for request in requests)
    reset_peak()
    walls: list[float] = []
    cpus: list[float] = []
    deadline = time.monotonic() + repetition.seconds
    while len(walls) < repetition.rounds and not (walls and time.monotonic() > deadline):
        requests = scenario.prepare(service.send, world, WARM_UP + 1 + len(walls))
        wall, cpu = time.perf_counter(), time.process_time()
        for request in requests:
            service.send(request)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return Result(
        world=world.kind,
        hosts=world.hosts,
        devices=world.devices,
        scenario=scenario.name,
        statements=cost.statements,
        rows=cost.rows,
        bytes=size,
        ms=round(statistics.median(walls), 2),
        least_ms=round(min(walls), 2),
        cpu_ms=round(statistics.median(cpus), 2),
        peak_mib=round(peak_mib(), 1),
        rounds=len(walls),
    )


def reset_peak() -> None:
    """Reset the memory peak of this process to its current memory; works only on Linux."""
    with contextlib.suppress(OSError):
        Path('/proc/self/clear_refs').write_text('5')


def peak_mib() -> float:
    """Return the peak resident memory of this process in MiB."""
    with contextlib.suppress(OSError):
        for line in Path('/proc/self/status').read_text().splitlines():
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) / 1024
    unit = 1024 * 1024 if sys.platform == 'darwin' else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
