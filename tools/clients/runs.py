"""The clients, and runs of them."""

from importlib import import_module, metadata
import logging
import traceback
import warnings

from tools import with_database
from tools.clients.cloud import Use, running

# The name of the client -> the module that uses it.
CLIENTS = {
    'openstacksdk': 'sdk',
    'neutron-lib': 'neutron',
    'tempest': 'tempest',
    'blazar': 'blazar',
}


def installed(name: str) -> str | None:
    """Return the version of a client, or None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def use(name: str) -> tuple[int, list[str]]:
    """Return the number of requests of a client, and the differences from the documents."""
    logging.disable(logging.WARNING)
    try:
        uses = _uses(name)
    except Exception:  # an old release can fail in any way with newer libraries
        return 0, [traceback.format_exc()]
    requests = 0
    differences: list[str] = []
    for one in uses:
        with running(with_database.free_port()) as cloud:
            try:
                one(cloud)
            except Exception:  # each client has exceptions of its own
                differences.append(traceback.format_exc())
            differences += cloud.recorder.differences
            requests += cloud.recorder.statuses.total()
    return requests, differences


def _uses(name: str) -> tuple[Use, ...]:
    """Import what uses a client, and ignore the warnings for the developers of the client."""
    with warnings.catch_warnings(action='ignore'):
        uses: tuple[Use, ...] = import_module(f'tools.clients.{CLIENTS[name]}').USES
    warnings.simplefilter('ignore')
    return uses
