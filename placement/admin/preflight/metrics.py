"""Checks of the metrics of the service."""

import importlib.util
import os
import pathlib

from oslo_config import cfg

from placement.admin.preflight.model import Verdict, failure, ok, skipped, warning
from placement.telemetry import DIRECTORY

_LIBRARY = 'prometheus_client'


def check(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the metrics can be collected, if they are enabled."""
    if 'metrics' not in config or not config.metrics.enabled:
        return [skipped('The metrics are not enabled.')]
    installed = importlib.util.find_spec(_LIBRARY) is not None
    directory = os.environ.get(DIRECTORY)
    return [judge(installed, directory, bool(directory) and _is_writable(str(directory)))]


def _is_writable(directory: str) -> bool:
    return pathlib.Path(directory).is_dir() and os.access(directory, os.W_OK)


def judge(installed: bool, directory: str | None, writable: bool) -> Verdict:
    """Judge the prerequisites of the metrics.

    :param installed: whether the library is installed
    :param directory: the directory that several processes share
    :param writable: whether the directory exists and is writable
    """
    if not installed:
        return failure(
            '[metrics] enabled is true, but prometheus_client is not installed. The service does '
            'not start.',
            "Run `pip install 'openstack-placement[metrics]'`.",
        )
    if directory is None:
        return ok(
            'The library is installed. If the service has several processes, set '
            f'{DIRECTORY} in their environment.'
        )
    if not writable:
        return warning(
            f'The directory {directory} ({DIRECTORY}) does not exist or is not writable.',
            'Create the directory for the user of the service.',
        )
    return ok(f'The library is installed. Processes share {directory}.')
