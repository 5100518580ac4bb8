"""The options that the service reads, and where they are set."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
from dataclasses import dataclass
import os

from keystoneauth1 import exceptions as auth_exceptions
from keystoneauth1 import loading
from keystonemiddleware import opts as middleware_opts
import oslo_cache
from oslo_config import cfg

from placement.conf import sources as config_sources

AUTH_GROUP = 'keystone_authtoken'
DEFAULT = 'DEFAULT'
# The name of the source of environment variables.
ENVIRONMENT = 'environment'


@dataclass(frozen=True, slots=True)
class Option:
    """An option that the service reads.

    :param old_names: the deprecated pairs of group and name, which still have an effect in a file
    :param removal: why a later release removes the option; None if it does not
    """

    group: str
    name: str
    old_names: tuple[tuple[str, str], ...] = ()
    removal: str | None = None
    secret: bool = False

    def __str__(self) -> str:
        return f'[{self.group}] {self.name}'


@dataclass(frozen=True, slots=True)
class Source:
    """A configuration file, or the environment, with the option names of each group."""

    name: str
    groups: Mapping[str, Sequence[str]]


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


def registered(config: cfg.ConfigOpts) -> list[Option]:
    """Return all registered options."""
    # `_all_opt_infos` is private, but only this method returns the deprecated names of options.
    infos = config._all_opt_infos()  # noqa: SLF001 - see above
    return [
        _option(group.name if group else DEFAULT, info['opt'])
        for info, group in infos
        if not isinstance(info['opt'], cfg.SubCommandOpt)
    ]


def _option(group: str, opt: cfg.Opt) -> Option:
    return Option(
        group,
        opt.dest,
        tuple((old.group or group, old.name or opt.dest) for old in opt.deprecated_opts),
        (opt.deprecated_reason or '') if opt.deprecated_for_removal else None,
        opt.secret,
    )


def value(config: cfg.ConfigOpts, option: Option) -> object:
    """Return the value of an option.

    :raises ValueError: the value is invalid
    """
    section = config if option.group == DEFAULT else config[option.group]
    return section[option.name]


def is_on_command_line(config: cfg.ConfigOpts, name: str) -> bool:
    """Return whether only the command line sets an option of `[DEFAULT]`."""
    location = config.get_location(name)
    return location is not None and location.location == cfg.Locations.command_line


def read_file(path: str) -> Source:
    """Return the names in a configuration file.

    :raises OSError: the file cannot be read
    :raises cfg.ParseError: the file has another format
    """
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(path, sections).parse()
    return Source(path, {group: list(names) for group, names in sections.items()})


def environment() -> Source:
    """Return the names that environment variables of oslo.config set, in lower case."""
    groups: dict[str, list[str]] = {}
    for variable in sorted(os.environ):
        group, separator, name = variable.removeprefix('OS_').partition('__')
        if variable.startswith('OS_') and separator and variable.isupper():
            group = DEFAULT if group == DEFAULT else group.lower()
            groups.setdefault(group, []).append(name.lower())
    return Source(ENVIRONMENT, groups)


def sources(config: cfg.ConfigOpts) -> Iterator[Source]:
    """Yield the configuration files and the environment.

    :raises OSError: a file cannot be read any more
    :raises cfg.ParseError: a file has another format now
    """
    for path in config_sources.files(config):
        yield read_file(path)
    yield environment()
