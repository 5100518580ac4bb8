"""Read the configuration, for the service and for the commands, from the same sources."""

from collections.abc import Iterator, Sequence
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

# If the command line contains one of these options, it selects the configuration files.
_FILE_OPTIONS = ('--config-file', '--config-dir')


class MissingOption(cfg.RequiredOptError):
    """A required option has no value.

    :ivar files: the configuration files and directories that were read
    """

    def __init__(self, name: str, group: str, files: Sequence[str]) -> None:
        super().__init__(name, group)
        self.files = tuple(files)


def read(config: cfg.ConfigOpts, arguments: Sequence[str] = (), prog: str | None = None) -> None:
    """Parse the command line, the configuration files, and the environment variables.

    If the environment variable `OS_PLACEMENT_CONFIG_DIR` is set, the only configuration file is
    placement.conf in that directory. Options on the command line override this variable. If neither
    is set, oslo.config searches its default directories.

    :param config: a configuration object whose options are registered
    :param arguments: the command line without the name of the program
    :param prog: the name of the program; by default, the name of the running program
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
            )
    except cfg.RequiredOptError as error:
        raise missing_option(config, error.opt_name, _name(error.group)) from error


def missing_option(config: cfg.ConfigOpts, name: str, group: str) -> MissingOption:
    """Return the exception for an option without a value, with the files that were read."""
    return MissingOption(name, group, [*config.config_file, *config.config_dir])


def _name(group: cfg.OptGroup | str | None) -> str:
    return group.name if isinstance(group, cfg.OptGroup) else group or 'DEFAULT'


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
