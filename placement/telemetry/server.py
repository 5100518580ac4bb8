"""The processes of the web server."""

import functools
import importlib
import logging

LOG = logging.getLogger(__name__)

# The environment variable with the directory in which several processes keep their metrics.
DIRECTORY = 'PROMETHEUS_MULTIPROC_DIR'

# Only inside of these web servers, the module has the attribute.
_PROCESSES = (('uwsgi', 'numproc'), ('mod_wsgi', 'maximum_processes'))

_warned = False


@functools.cache
def process_count() -> int | None:
    """Return the number of processes that serve requests, None if it is unknown."""
    for name, attribute in _PROCESSES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        count = getattr(module, attribute, None)
        if isinstance(count, int):
            return count
    return None


def warn_of_separate_processes() -> None:
    """Log, once for each process, that the metrics of several processes are not added up."""
    global _warned
    if not _warned:
        _warned = True
        LOG.warning(
            'Several processes serve requests, and each process returns only its own metrics. To '
            'add up the metrics, set the environment variable %s to a directory that all these '
            'processes share.',
            DIRECTORY,
        )
