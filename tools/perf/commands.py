"""Measure the commands of operators: ``python -m tools.perf.commands``.

Run the tool in the top directory of the source tree. It fills a database with generated data, runs
each command of `placement-manage` as a process, and prints the seconds of the process, the seconds
that its own code takes without the database server, and its peak memory.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import csv
from dataclasses import dataclass
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import time

from tools import with_database
from tools.perf import databases, measure, worlds
from tools.perf.worlds import DEVICE, RACKS, RARE, World

# The racks and the rare trait exclude each other, so this requirement is never satisfied.
_IMPOSSIBLE = f'{RARE},!{RACKS[0]}'
# No candidate satisfies these queries.
QUERIES = {
    'flat': (
        'resources=VCPU:8,MEMORY_MB:16384,DISK_GB:100'
        f'&required=COMPUTE_VOLUME_MULTI_ATTACH,{_IMPOSSIBLE}'
        f'&member_of=!{worlds.name_based("aggregate-3")}'
    ),
    'numa': (
        'resources=DISK_GB:100&resources_1=VCPU:4,MEMORY_MB:8192&resources_2=VCPU:4,MEMORY_MB:8192'
        '&resources_N=SRIOV_NET_VF:2&required_1=HW_NUMA_ROOT&group_policy=isolate'
        f'&same_subtree=_1,_N&root_required={_IMPOSSIBLE}'
    ),
    'pci': (
        f'resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40&resources1={DEVICE}:1&resources2={DEVICE}:1'
        f'&resources3={DEVICE}:1&group_policy=isolate&required={_IMPOSSIBLE}'
    ),
    'shared': f'resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40&required={_IMPOSSIBLE}',
}
# In every tree, each condition is satisfied alone, but not all together.
TOGETHER = (
    'resources_1=VCPU:1&resources_2=VCPU:1&resources_3=VCPU:1'
    '&required_1=HW_NUMA_ROOT&required_2=HW_NUMA_ROOT&required_3=HW_NUMA_ROOT&group_policy=isolate'
)
# Queries that fit about 20 times on a host with 10 consumers.
HEADROOM = {
    'flat': 'resources=VCPU:4,MEMORY_MB:4096,DISK_GB:40',
    'numa': 'resources=DISK_GB:40&resources1=VCPU:4,MEMORY_MB:4096&resources2=SRIOV_NET_VF:1'
    '&group_policy=none',
    'pci': f'resources=VCPU:4,MEMORY_MB:4096,DISK_GB:40&resources1={DEVICE}:1',
    'shared': 'resources=VCPU:4,MEMORY_MB:4096,DISK_GB:40',
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one execution of a command took.

    :ivar seconds: from the start of the process to its end
    :ivar cpu_seconds: the processor time of the process, without that of the database server
    :ivar peak_mib: the peak of the resident memory
    """

    command: str
    seconds: float
    cpu_seconds: float
    peak_mib: float


class CommandFailedError(Exception):
    """A command failed; the message has its command line and its standard error."""


def main() -> int:
    """Measure all commands and return the exit status."""
    options = _parse()
    results = []
    try:
        with databases.private(options.engine) as create_database:
            for hosts in options.hosts:
                for kind in options.kinds:
                    world = World(kind, hosts, consumers=options.consumers)
                    for cost in _measure(world, create_database, options.only):
                        results.append(_row(options.engine, world, cost))
                        print(*results[-1].values(), sep='\t', flush=True)
    except (with_database.ServerStartError, CommandFailedError) as error:
        print(f'perf.commands: {error}', file=sys.stderr)
        return 1
    if options.output:
        with options.output.open('w', newline='') as file:
            writer = csv.DictWriter(file, list(results[0]), lineterminator='\n')
            writer.writeheader()
            writer.writerows(results)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.commands', description='Measure the commands of operators.'
    )
    parser.add_argument(
        '--engine', choices=databases.ENGINES, default='mariadb', help='database system to start'
    )
    parser.add_argument('--hosts', type=int, nargs='+', default=[10_000], help='numbers of hosts')
    parser.add_argument('--consumers', type=int, default=10, help='consumers of each host')
    parser.add_argument('--kinds', choices=worlds.KINDS, nargs='+', default=list(worlds.KINDS))
    parser.add_argument('--only', nargs='+', metavar='COMMAND', help='measure only these commands')
    parser.add_argument('--output', type=Path, metavar='CSV', help='file to write')
    return parser.parse_args()


def _row(engine: str, world: World, cost: Cost) -> dict[str, object]:
    return {
        'Database': engine,
        'World': world.kind,
        'Hosts': world.hosts,
        'Command': cost.command,
        'Seconds': f'{cost.seconds:.1f}',
        'Processor seconds': f'{cost.cpu_seconds:.1f}',
        'MiB': f'{cost.peak_mib:.0f}',
    }


def _commands(kind: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the arguments of each command."""
    assumed = ('--assume', 'set:VCPU.allocation_ratio=8')
    yield 'explain', ('explain', QUERIES[kind])
    yield 'explain --assume', ('explain', QUERIES[kind], *assumed)
    if kind == 'numa':
        yield 'explain, no single reason', ('explain', TOGETHER)
    yield 'headroom', ('headroom', HEADROOM[kind])
    yield 'headroom --assume', ('headroom', HEADROOM[kind], *assumed)
    yield 'drain', ('drain', 'host-000000')
    yield 'drain --each', ('drain', '--each')
    yield 'audit', ('audit',)
    yield 'report', ('report', 'report.html')
    yield 'exporter --once', ('exporter', '--once')
    yield 'export', ('export', 'cloud.jsonl')


def _measure(
    world: World, create_database: databases.CreateDatabase, only: Sequence[str] | None
) -> Iterator[Cost]:
    name = f'{world.kind}_{world.hosts}'
    url = create_database(name)
    measure.in_new_process(measure.build, url, world, False)
    with tempfile.TemporaryDirectory(prefix='placement-commands-') as folder:
        for label, arguments in _commands(world.kind):
            if only is None or arguments[0] in only:
                yield run(label, arguments, url, Path(folder))
        exported = Path(folder, 'cloud.jsonl')
        if exported.exists() and (only is None or 'import' in only):
            target = create_database(f'{name}_imported')
            run('db sync', ('db', 'sync'), target, Path(folder))
            yield run('import', ('import', str(exported)), target, Path(folder))
            # The statistics of the server do not include the imported rows yet.
            yield run('audit after the import', ('audit',), target, Path(folder))


def run(label: str, arguments: Sequence[str], url: str, folder: Path) -> Cost:
    """Run a command in a folder and return its cost.

    :raises CommandFailedError: the exit status is neither 0 nor 1
    """
    environment = dict(
        os.environ, OS_PLACEMENT_DATABASE__CONNECTION=url, PYTHONPATH=str(Path.cwd())
    )
    with contextlib.ExitStack() as stack:
        stdout = stack.enter_context(Path(folder, 'stdout').open('wb'))
        stderr = stack.enter_context(Path(folder, 'stderr').open('wb'))
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, '-m', 'placement.cmd.manage', *arguments],
            cwd=folder,
            env=environment,
            stdout=stdout,
            stderr=stderr,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise CommandFailedError(f'{arguments}: {Path(folder, "stderr").read_text()}')
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Cost(label, seconds, cpu_seconds, usage.ru_maxrss / 1024)


if __name__ == '__main__':
    sys.exit(main())
