"""The files in `PROMETHEUS_MULTIPROC_DIR`, in which several processes keep their metrics.

prometheus_client writes the metrics of a process to one file for each type of metric. The sum of
the files is the result of a scrape. The files of a process that has ended are removed:

* The gauges of the process are dropped, because nothing of what they count exists anymore.
* The counters and histograms of the process are added to an archive file. Otherwise, the sum would
  decrease.

The process itself removes its files when it exits. If it was killed, the next scrape or the next
start of a process removes them. If a process starts while no other process is alive, it also
removes the archive, so that all counters start at 0. The number of files is therefore bounded.
"""

import atexit
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
import contextlib
import fcntl
import logging
import os
from pathlib import Path
import re
import struct

from prometheus_client import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from placement.telemetry.declarations import METRICS

LOG = logging.getLogger(__name__)

# For example `counter_123-4567.db` and `gauge_livesum_123-4567.db`, where 123-4567 is an identity.
_FILE = re.compile(r'(counter|histogram|gauge_livesum)_(\d+-\d+)\.db')
_ADDED_UP = ('counter', 'histogram')
_GAUGES = 'gauge_livesum'
_ARCHIVE = 'archive'
_PROC = Path('/proc')

_known: dict[int, str] = {}


def identity() -> str:
    """Return a name of this process that no later process has: its id and its start time.

    prometheus_client calls this function for each change of a metric, to detect a fork.
    """
    pid = os.getpid()
    known = _known.get(pid)
    if known is None:
        known = _known[pid] = f'{pid}-{_start_time(pid) or 0}'
    return known


def is_alive(name: str) -> bool:
    """Whether the process with this identity exists."""
    pid, _, start_time = name.partition('-')
    if not _PROC.joinpath('self', 'stat').exists():
        return _exists(int(pid))
    return str(_start_time(int(pid))) == start_time


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # a process of another user
    return True


def _start_time(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot, None if it does not run."""
    try:
        text = _PROC.joinpath(str(pid), 'stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc(5): the second field is the name of the program, which can contain spaces and
    # parentheses. The third field is the state, and field 22 is the start time.
    fields = text.rpartition(')')[2].split()
    return None if fields[0] in ('Z', 'X') else int(fields[19])


class MetricFiles:
    """The metric files of all processes. A lock file serializes changes and scrapes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(self) -> None:
        """Create the directory, and remove the files of processes that have ended.

        :raises OSError: the directory can be neither used nor created
        """
        with contextlib.suppress(FileExistsError):
            self.directory.mkdir()
        with self.locked():
            ended, alive = self._identities()
            if not alive:
                for kind in _ADDED_UP:
                    self._path(kind, _ARCHIVE).unlink(missing_ok=True)
                self._drop((*_ADDED_UP, _GAUGES), ended)
            else:
                self._archive(ended)
        atexit.register(self.leave)

    def leave(self) -> None:
        """Remove the files of this process, which exits."""
        # The directory may have been deleted in the meantime.
        with contextlib.suppress(OSError), self.locked():
            self._archive([identity()])

    def archive_ended(self) -> None:
        """Remove the files of processes that have ended; the caller must hold the lock."""
        self._archive(self._identities()[0])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the directory."""
        with self.directory.joinpath('lock').open('a') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, kind: str, name: str) -> Path:
        return self.directory / f'{kind}_{name}.db'

    def _identities(self) -> tuple[list[str], list[str]]:
        """Return the identities with files: those of ended processes, and those of others."""
        matches = (_FILE.fullmatch(path.name) for path in self.directory.iterdir())
        ended: list[str] = []
        alive: list[str] = []
        for name in sorted({match[2] for match in matches if match}):
            (alive if is_alive(name) else ended).append(name)
        return ended, alive

    def _archive(self, ended: Collection[str]) -> None:
        for kind in _ADDED_UP:
            self._add_up(kind, ended)
        self._drop((_GAUGES,), ended)

    def _add_up(self, kind: str, ended: Iterable[str]) -> None:
        """Add the counters or the histograms of ended processes to the archive."""
        files = [path for name in ended if (path := self._path(kind, name)).exists()]
        if not files:
            return
        archive = self._path(kind, _ARCHIVE)
        sums: defaultdict[str, float] = defaultdict(float)
        for path in (archive, *files):
            for key, value in _read(path).items():
                sums[key] += value
        replacement = archive.with_suffix('.new')
        replacement.unlink(missing_ok=True)
        target = MmapedDict(str(replacement))
        for key, value in sums.items():
            target.write_value(key, value, 0.0)
        target.close()
        replacement.replace(archive)
        for path in files:
            path.unlink()

    def _drop(self, kinds: Iterable[str], ended: Collection[str]) -> None:
        for kind in kinds:
            for name in ended:
                self._path(kind, name).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, float]:
    """Return the values in a file by key; empty if the file does not exist or is damaged."""
    try:
        rows = list(MmapedDict.read_all_values_from_file(str(path)))
    except FileNotFoundError:
        return {}
    except (RuntimeError, ValueError, struct.error):
        # A process that is killed can leave an incomplete file.
        LOG.warning('Ignoring %s, because the file is damaged.', path)
        return {}
    return {row[0]: row[1] for row in rows}


class AllProcesses(Collector):
    """Collects the metrics of all processes."""

    def __init__(self, files: MetricFiles) -> None:
        self._files = files

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without values, so that a request can select metrics by name."""
        return [Metric(name, declared.help, declared.kind) for name, declared in METRICS.items()]

    def collect(self) -> Iterable[Metric]:
        """Return the sums of the metrics of all processes."""
        with self._files.locked():
            self._files.archive_ended()
            collector = MultiProcessCollector(None, str(self._files.directory))
            return list(collector.collect())
