"""The files in `PROMETHEUS_MULTIPROC_DIR`, in which several processes keep their metrics.

prometheus_client writes the metrics of a process to one file for each type of metric. The sum of
the files is the result of a scrape. Each process has a number, and the names of its files contain
this number. The process locks another file with this number, and the system releases the lock when
the process ends:

* The next process with this number continues the counters and histograms of the files. Therefore
  the sums do not decrease, and the number of files is bounded.
* The next scrape or start of a process removes the gauges, because nothing of what they count
  exists anymore.

If a process starts while no other process is alive, it removes all files of metrics, so that all
counters start at 0.
"""

from collections.abc import Iterable, Iterator
import contextlib
import fcntl
import itertools
import os
from pathlib import Path
from typing import TextIO

from prometheus_client import Metric, multiprocess
from prometheus_client.registry import Collector

from placement.telemetry.declarations import METRICS


class MetricFiles:
    """The metric files of all processes. A lock file serializes starts and scrapes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._pid: int | None = None
        self._number = 0
        self._lock: TextIO | None = None

    def prepare(self) -> None:
        """Create the directory, and determine the number of this process.

        :raises OSError: the directory can be neither used nor created
        """
        with contextlib.suppress(FileExistsError):
            self.directory.mkdir()
        self.number()

    def number(self) -> int:
        """Return the number of this process, which no other living process has.

        prometheus_client calls this function for each change of a metric, to detect a fork.
        """
        pid = os.getpid()
        if pid != self._pid:
            if self._lock is not None:
                self._lock.close()  # It is inherited; the parent process keeps its lock.
            with self.locked():
                self._number, self._lock = self._join()
            self._pid = pid
        return self._number

    def remove_gauges(self) -> list[int]:
        """Remove the gauges of ended processes; the caller must hold the lock.

        :returns: the numbers of the ended processes
        """
        ended = [number for number, path in self._lock_files() if _is_unlocked(path)]
        for number in ended:
            multiprocess.mark_process_dead(number, str(self.directory))
        return ended

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the directory."""
        with self.directory.joinpath('lock').open('a') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _join(self) -> tuple[int, TextIO]:
        """Return the smallest free number, and the file that this process has locked for it."""
        ended = self.remove_gauges()
        known = len(list(self._lock_files()))
        if len(ended) == known:
            for path in self.directory.glob('*.db'):
                path.unlink()
        number = min(ended, default=known)
        file = self._lock_file(number).open('a')
        fcntl.flock(file, fcntl.LOCK_EX)
        return number, file

    def _lock_files(self) -> Iterator[tuple[int, Path]]:
        """Yield all numbers, and the files that their processes lock."""
        for number in itertools.count():
            path = self._lock_file(number)
            if not path.exists():
                return
            yield number, path

    def _lock_file(self, number: int) -> Path:
        return self.directory / f'process_{number}.lock'


def _is_unlocked(path: Path) -> bool:
    with path.open('a') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


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
            self._files.remove_gauges()
            # A process that creates a file, or was killed meanwhile, can leave the file empty.
            paths = (path for path in self._files.directory.glob('*.db') if path.stat().st_size)
            return list(multiprocess.MultiProcessCollector.merge([str(path) for path in paths]))
