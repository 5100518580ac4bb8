"""The options that the service reads, where they are set, and their secrets."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import os
import re

from keystoneauth1 import exceptions as auth_exceptions
from keystoneauth1 import loading
from keystonemiddleware import opts as middleware_opts
import oslo_cache
from oslo_config import cfg

from placement.conf import database_url, sources

AUTH_GROUP = 'keystone_authtoken'
DEFAULT = 'DEFAULT'
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
    group = plugin_group(config)
    loading.register_auth_conf_options(config, AUTH_GROUP)
    if not (plugin := config[group].auth_type):
        return
    # A check of its own reports an unknown plugin.
    with contextlib.suppress(auth_exceptions.NoMatchingPlugin):
        config.register_opts(loading.get_auth_plugin_conf_options(plugin), group=group)


def plugin_group(config: cfg.ConfigOpts) -> str:
    """Return the group of the options of the auth plugin."""
    return str(config[AUTH_GROUP].auth_section or AUTH_GROUP)


def registered(config: cfg.ConfigOpts) -> dict[Name, cfg.Opt]:
    """Return all registered options."""
    # `_all_opt_infos` is private, but only this method returns the deprecated names of options.
    infos = config._all_opt_infos()  # noqa: SLF001 - see above
    return {
        (group.name if group else DEFAULT, info['opt'].dest): info['opt']
        for info, group in infos
        if not isinstance(info['opt'], cfg.SubCommandOpt)
    }


def old_names(name: Name, option: cfg.Opt) -> list[Name]:
    """Return the deprecated names of an option, which still have an effect in a file."""
    group, current = name
    return [(old.group or group, old.name or current) for old in option.deprecated_opts]


def value(config: cfg.ConfigOpts, name: Name) -> object:
    """Return the value of an option.

    :raises ValueError: the value is invalid
    """
    group, option = name
    return (config if group == DEFAULT else config[group])[option]


def is_on_command_line(config: cfg.ConfigOpts, name: str) -> bool:
    """Return whether only the command line sets an option of `[DEFAULT]`."""
    location = config.get_location(name)
    return location is not None and location.location == cfg.Locations.command_line


def set_names(config: cfg.ConfigOpts) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """Yield each configuration file and the environment, with the names in each of its groups.

    :raises OSError: a file cannot be read any more
    :raises cfg.ParseError: a file has another format now
    """
    for path in sources.files(config):
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(path, sections).parse()
        yield path, {group: list(names) for group, names in sections.items()}
    yield ENVIRONMENT, _in_environment()


def _in_environment() -> dict[str, list[str]]:
    """Return the names that environment variables of oslo.config set, in lower case."""
    groups: dict[str, list[str]] = {}
    for variable in sorted(os.environ):
        group, separator, name = variable.removeprefix('OS_').partition('__')
        if variable.startswith('OS_') and separator and variable.isupper():
            groups.setdefault(normalized(group), []).append(name.lower())
    return groups


def normalized(group: str) -> str:
    """Return the name under which oslo.config finds a group of a file."""
    return group if group == DEFAULT else group.lower()


def masked(text: str, config: cfg.ConfigOpts) -> str:
    """Return a text with `***` in place of each secret of the configuration.

    The secrets are the values of secret options, and the passwords in the URLs of databases. A
    secret is not replaced if it is a part of a word.
    """
    secrets = set()
    for name, option in registered(config).items():
        with contextlib.suppress(ValueError, cfg.Error):
            secrets.add(str(value(config, name) or '') if option.secret else '')
    secrets |= {part for secret in secrets for part in database_url.secrets(secret)}
    for secret in sorted(secrets - {''}, key=len, reverse=True):
        text = re.sub(rf'(?<!\w){re.escape(secret)}(?!\w)', '***', text)
    return text
