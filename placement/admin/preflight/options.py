"""The options that the service reads, where they are set, and their secrets."""

from collections.abc import Iterator, Sequence
import contextlib
import os

from keystoneauth1 import exceptions as auth_exceptions
from keystoneauth1 import loading
from keystonemiddleware import opts as middleware_opts
import oslo_cache
from oslo_config import cfg

from placement import messages
from placement.conf import authtoken, database_url, sources

# The name of the source of environment variables.
ENVIRONMENT = 'environment'

# The group and the name of an option.
Name = tuple[str, str]


def register_libraries(config: cfg.ConfigOpts) -> None:
    """Register the options that libraries register when the application is built.

    :param config: the parsed configuration
    """
    for group, opts in middleware_opts.list_auth_token_opts():
        config.register_opts(opts, group=group)
    oslo_cache.configure(config)
    # Checks of their own report an unknown plugin, a missing one, and an invalid value.
    with contextlib.suppress(auth_exceptions.NoMatchingPlugin, cfg.Error):
        loading.register_auth_conf_options(config, authtoken.GROUP)
        group = plugin_group(config)
        if plugin := config[group].auth_type:
            config.register_opts(loading.get_auth_plugin_conf_options(plugin), group=group)


def plugin_group(config: cfg.ConfigOpts) -> str:
    """Return the group of the options of the auth plugin."""
    return str(config[authtoken.GROUP].auth_section or authtoken.GROUP)


def is_on_command_line(config: cfg.ConfigOpts, name: str) -> bool:
    """Return whether only the command line sets an option of `[DEFAULT]`."""
    location = config.get_location(name)
    return location is not None and location.location == cfg.Locations.command_line


def known(config: cfg.ConfigOpts, source: str) -> dict[str, dict[str, Name]]:
    """Return the names that have an effect in a source, by group, with the current name of each."""
    names: dict[str, dict[str, Name]] = {}
    for (group, name), option in sources.registered(config).items():
        names.setdefault(group, {})[name] = group, name
        # In the environment, deprecated names have no effect.
        for old in option.deprecated_opts if source != ENVIRONMENT else ():
            names.setdefault(old.group or group, {}).setdefault(old.name or name, (group, name))
    return names


def set_names(config: cfg.ConfigOpts) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield each configuration file and the environment, with each group and its names.

    :raises OSError: a file cannot be read any more
    :raises cfg.ParseError: a file has another format now
    """
    for path in sources.files(config):
        for group, names in sources.names_in(path).items():
            yield path, group, names
    for group, names in _in_environment().items():
        yield ENVIRONMENT, group, names


def _in_environment() -> dict[str, list[str]]:
    """Return the names that environment variables of oslo.config set, in lower case."""
    groups: dict[str, list[str]] = {}
    for variable in sorted(os.environ):
        group, separator, name = variable.removeprefix('OS_').partition('__')
        if variable.startswith('OS_') and separator and variable.isupper():
            groups.setdefault(sources.normalized(group), []).append(name.lower())
    return groups


def masked(text: str, config: cfg.ConfigOpts) -> str:
    """Return a text with `***` in place of each secret of the configuration.

    The secrets are the values of secret options, and the passwords in the URLs of databases.
    """
    secrets = set()
    for (group, name), option in sources.registered(config).items():
        if option.secret:
            with contextlib.suppress(ValueError, cfg.Error):
                secret = str(sources.value(config, group, name) or '')
                secrets |= {secret, *database_url.secrets(secret)}
    return messages.masked(text, secrets - {''})
