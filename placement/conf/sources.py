"""Read the configuration, for the service and for the commands, from the same sources."""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import io
import os
import pathlib
import sys
from typing import Any

from oslo_config import cfg

from placement import version

CONFIG_DIR = 'OS_PLACEMENT_CONFIG_DIR'
PROJECT = 'placement'
# The name of the group of options without a group.
DEFAULT = 'DEFAULT'

# If the command line contains one of these options, it selects the configuration files.
_FILE_OPTIONS = ('--config-file', '--config-dir')

# The exceptions of oslo.config for `$` and a name. Their messages contain the name.
_UNRESOLVED = (cfg.NoSuchOptError, cfg.NoSuchGroupError, cfg.TemplateSubstitutionError)


class MissingOption(cfg.RequiredOptError):
    """A required option has no value.

    :ivar files: the configuration files and directories that were read
    """

    def __init__(self, name: str, group: str, files: Sequence[str]) -> None:
        super().__init__(name, group)
        self.files = tuple(files)


class UnresolvedReference(cfg.Error):
    """The value of an option contains `$`, and not the name of an option after it.

    The message contains no part of the value, which can be a password.
    """


def read(
    config: cfg.ConfigOpts, arguments: Sequence[str] = (), prog: str | None = None, **help_: Any
) -> None:
    """Parse the command line, the configuration files, and the environment variables.

    If the environment variable `OS_PLACEMENT_CONFIG_DIR` is set, the only configuration file is
    placement.conf in that directory. Options on the command line override this variable. If neither
    is set, oslo.config searches its default directories.

    :param config: a configuration object whose options are registered
    :param arguments: the command line without the name of the program
    :param prog: the name of the program; by default, the name of the running program
    :param help_: the parts `usage`, `description`, and `epilog` of the help
    :raises cfg.ConfigFilesNotFoundError: a configuration file does not exist
    :raises cfg.ConfigFileParseError: a configuration file is malformed
    :raises cfg.ConfigFileValueError: an option of the command line has an invalid value in a file
    :raises MissingOption: a required option has no value
    """
    sources: dict[str, Any] = {}
    directory = os.environ.get(CONFIG_DIR, '').strip()
    if directory and not any(word.startswith(_FILE_OPTIONS) for word in arguments):
        sources['default_config_files'] = [str(pathlib.Path(directory, 'placement.conf'))]
        sources['default_config_dirs'] = []
    try:
        with _exit_as_error():
            config(
                list(arguments),
                project=PROJECT,
                prog=prog,
                version=version.version_string(),
                **sources,
                **help_,
            )
    except cfg.RequiredOptError as error:
        raise missing_option(config, error.opt_name, _name(error.group)) from error
    except UnicodeDecodeError as error:
        paths = sources.get('default_config_files') or _searched(arguments, prog)
        raise cfg.ConfigFileParseError(_first_undecodable(paths), str(error)) from error


def _searched(arguments: Sequence[str], prog: str | None) -> Iterator[str]:
    """Yield the configuration files that oslo.config reads, and other files of the command line."""
    yield from cfg.find_config_files(PROJECT, prog)
    words = [word.rpartition('=')[2] for word in arguments]
    for path in map(pathlib.Path, (*cfg.find_config_dirs(PROJECT, prog), *words)):
        yield from map(str, sorted(path.glob('*.conf')) if path.is_dir() else [path])


def _first_undecodable(paths: Iterable[str]) -> str:
    for path in paths:
        try:
            pathlib.Path(path).read_text(encoding='utf-8')
        except UnicodeDecodeError:
            return path
        except OSError:
            continue
    return 'of this process'


def missing_option(config: cfg.ConfigOpts, name: str, group: str) -> MissingOption:
    """Return the exception for an option without a value, with the files that were read."""
    return MissingOption(name, group, [*config.config_file, *config.config_dir])


def _name(group: cfg.OptGroup | str | None) -> str:
    return group.name if isinstance(group, cfg.OptGroup) else group or DEFAULT


@contextlib.contextmanager
def explaining_references(config: cfg.ConfigOpts) -> Iterator[None]:
    """Name the option if the block reads a value with a `$` that is part of a password.

    The exception of oslo.config names the text after the `$` instead of the option. Therefore it
    is suppressed, also in tracebacks.

    :raises UnresolvedReference: the block raised an exception for such a value
    """
    try:
        yield
    except _UNRESOLVED:
        explained = _explained(config)
        if explained is None:
            raise
        raise explained from None


def _explained(config: cfg.ConfigOpts) -> UnresolvedReference | None:
    """Return the exception for the first option with an unresolved reference."""
    for group, name in registered(config):
        try:
            value(config, group, name)
        except UnresolvedReference as explained:
            return explained
        except (ValueError, cfg.Error):
            continue
    return None


def registered(config: cfg.ConfigOpts) -> dict[tuple[str, str], cfg.Opt]:
    """Return all registered options, by the name of the group and of the option."""
    # `_all_opt_infos` is private, but no public method returns the options of all groups.
    infos = config._all_opt_infos()  # noqa: SLF001 - see above
    return {
        (_name(group), info['opt'].dest): info['opt']
        for info, group in infos
        if not isinstance(info['opt'], cfg.SubCommandOpt)
    }


def value(config: cfg.ConfigOpts, group: str, name: str) -> object:
    """Return the value of an option.

    :raises UnresolvedReference: the value contains `$`, and not the name of an option after it
    :raises ValueError: the value is invalid
    """
    try:
        return (config if group == DEFAULT else config[group])[name]
    except _UNRESOLVED:
        raise UnresolvedReference(
            f'The value of [{group}] {name} in {_location(config, group, name)} contains $ and not '
            'the name of an option after it. Write $$ for a dollar sign.'
        ) from None


def _location(config: cfg.ConfigOpts, group: str, name: str) -> str:
    """Return the environment variable or the file that sets an option."""
    variable = f'OS_{group}__{name}'.upper()
    if variable in os.environ:
        return f'the environment variable {variable}'
    for path in reversed(files(config)):
        with contextlib.suppress(OSError, cfg.ParseError):
            if name in names_in(path).get(normalized(group), ()):
                return path
    return 'the configuration'


def names_in(path: str) -> dict[str, list[str]]:
    """Return the names of the options in a configuration file, by group.

    :raises OSError: the file cannot be read
    :raises cfg.ParseError: the file is malformed
    """
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(path, sections).parse()
    names: dict[str, list[str]] = {}
    for group, section in sections.items():
        names.setdefault(normalized(group), []).extend(section)
    return names


def normalized(group: str) -> str:
    """Return the name under which oslo.config finds a group of a file."""
    return group if group == DEFAULT else group.lower()


def files(config: cfg.ConfigOpts) -> list[str]:
    """Return the paths of the configuration files that oslo.config has read, in its order."""
    directories = [pathlib.Path(directory) for directory in config.config_dir]
    return [
        *config.config_file,
        *(str(path) for directory in directories for path in sorted(directory.glob('*.conf'))),
    ]


@contextlib.contextmanager
def _exit_as_error() -> Iterator[None]:
    """Convert the exit for an invalid value in a configuration file into an exception.

    For options that the command line has, too, such as `debug`, oslo.config prints the reason and
    exits. After such an exit, uWSGI starts the worker process again, without end.
    """
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            yield
    except SystemExit as error:
        if not isinstance(error.__context__, ValueError):
            sys.stderr.write(output.getvalue())
            raise
        option, _, reason = output.getvalue().strip().removeprefix('argument --').partition(': ')
        raise cfg.ConfigFileValueError(
            f'[DEFAULT] {option} is not valid: {reason}. Correct the value.'
        ) from error
    sys.stderr.write(output.getvalue())
