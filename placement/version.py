"""The version of the installed package."""

import importlib.metadata

DISTRIBUTION = 'openstack-placement'


def version_string() -> str:
    """Return the version of the installed package, or `unknown` if it is not installed."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return 'unknown'
