"""Check the options of keystonemiddleware that otherwise fail when a request arrives."""

import importlib.util

from oslo_config import cfg

from placement.conf import sources

GROUP = 'keystone_authtoken'

# The modules that keystonemiddleware imports for memcached, and their packages.
_CLIENTS = {'memcache': "'openstack-placement[memcached]'"}
_CLIENTS_WITH_TLS_OR_SASL = _CLIENTS | {'bmemcached': 'python-binary-memcached'}


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
    if config[GROUP].memcached_servers and not config[GROUP].cache:
        _require_clients(config)


def _require_clients(config: cfg.ConfigOpts) -> None:
    options = config[GROUP]
    protected = options.memcache_tls_enabled or options.memcache_sasl_enabled
    for library, package in (_CLIENTS_WITH_TLS_OR_SASL if protected else _CLIENTS).items():
        if importlib.util.find_spec(library) is None:
            raise ImportError(
                f'[{GROUP}] memcached_servers has a value, but the Python library {library} is not '
                f'installed. Run `pip install {package}`, or remove the option.'
            )
