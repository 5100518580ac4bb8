"""Check the options of keystonemiddleware that otherwise fail when a request arrives."""

import importlib.util

from oslo_config import cfg

from placement.conf import sources

GROUP = 'keystone_authtoken'

# The library for memcached, and its package; with SASL, and without it.
_LIBRARIES = {
    True: ('bmemcached', 'python-binary-memcached'),
    False: ('memcache', "'openstack-placement[memcached]'"),
}


def validate(config: cfg.ConfigOpts) -> None:
    """Check that the service can request tokens, and that it can use the configured memcached.

    Without these values, keystonemiddleware starts, but every request with a token fails.

    :param config: a configuration object on which keystonemiddleware has registered its options
    :raises sources.MissingOption: `auth_type` has no value
    :raises ImportError: memcached is configured, and its library is not installed
    """
    section = config[GROUP].auth_section or GROUP
    if not config[section].auth_type:
        raise sources.missing_option(config, 'auth_type', section)
    if not config[GROUP].memcached_servers:
        return
    library, package = _LIBRARIES[config[GROUP].memcache_sasl_enabled]
    if importlib.util.find_spec(library) is None:
        raise ImportError(
            f'[{GROUP}] memcached_servers has a value, but the Python library {library} is not '
            f'installed. Run `pip install {package}`, or remove the option.'
        )
