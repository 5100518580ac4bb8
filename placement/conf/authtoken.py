"""Check the options of keystonemiddleware that otherwise fail when a request arrives."""

import importlib.util

from oslo_config import cfg

from placement.conf import sources

GROUP = 'keystone_authtoken'

# The modules that keystonemiddleware imports for memcached, and their packages.
_ENCRYPTION = {'cryptography': 'cryptography'}
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
    for library, package in missing_clients(config).items():
        raise ImportError(
            f'[{GROUP}] memcached_servers has a value, but the Python library {library} is not '
            f'installed. Run `pip install {package}`, or remove the option.'
        )


def missing_clients(config: cfg.ConfigOpts) -> dict[str, str]:
    """Return the libraries for the configured memcached that are not installed.

    :returns: the package of each library, as an argument for `pip install`
    """
    options = config[GROUP]
    if not options.memcached_servers or options.cache:
        return {}
    protected = options.memcache_tls_enabled or options.memcache_sasl_enabled
    clients = _CLIENTS_WITH_TLS_OR_SASL if protected else _CLIENTS
    if options.memcache_security_strategy.lower() == 'encrypt':
        clients = clients | _ENCRYPTION
    return {
        library: package
        for library, package in clients.items()
        if importlib.util.find_spec(library) is None
    }
