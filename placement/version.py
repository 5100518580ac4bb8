"""The version of the distribution."""

import importlib.metadata

DISTRIBUTION = 'openstack-placement'


def version_string() -> str:
    """Give the version of the installed distribution; `unknown` in a tree that is not installed."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return 'unknown'
