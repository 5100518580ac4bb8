"""The common parts of the commands: command line, configuration, log, and errors.

The modules that need the libraries of the database are imported by the functions that use them, so
that a command prints its help without them.
"""

import argparse
from collections.abc import Callable, Mapping
import contextlib
import functools
import os
import re
import signal
import sys
import traceback
from typing import Any, NoReturn

from oslo_config import cfg

from placement import conf
from placement.admin.console import require_file
from placement.conf import sources

Action = Callable[[cfg.ConfigOpts], int]

# The exit status of a command of `placement-manage db` that failed.
ERROR = 1
# The exit status of the other commands of `placement-manage` if they cannot do their work.
CANNOT = 2
# The exit status if the reader of the output closes it, for example `head`: that of a program that
# the signal SIGPIPE ends.
CLOSED = 128 + signal.SIGPIPE

# Both programs print this paragraph at the end of their help.
_ENVIRONMENT = (
    f'Environment variables: {sources.CONFIG_DIR} reads placement.conf in this directory and no '
    'other file; OS_<GROUP>__<OPTION> sets an option, for example '
    'OS_PLACEMENT_DATABASE__CONNECTION.'
)

# These loggers report failures that a command reports in its error message, too.
_REPETITIVE = ('placement.db.engine=ERROR', 'placement.db.failures=CRITICAL', 'oslo_db=CRITICAL')


def subcommands(parser: argparse.ArgumentParser) -> Any:
    """Return the object that adds subcommands to a command, which prints its help without one."""
    parser.set_defaults(action=functools.partial(_show_help, parser))
    return parser.add_subparsers(title='subcommands', metavar='SUBCOMMAND')


def add_command(commands: Any, name: str, text: str | None) -> argparse.ArgumentParser:
    """Add a command, and return its parser.

    :param commands: the result of `ArgumentParser.add_subparsers` or of `subcommands`
    :param name: the words of the command, beginning with the program
    :param text: the description of the command, often the docstring of its module; None if Python
        omits docstrings. The last paragraph can be the exit statuses, which end the help
    """
    text, mark, statuses = (text or '').partition('Exit status: ')
    text = ' '.join(text.split())
    # Without `prog`, the usage would contain the options of the program.
    parser: argparse.ArgumentParser = commands.add_parser(
        name.rpartition(' ')[2], prog=name, help=text, description=text, epilog=mark + statuses
    )
    return parser


def add_database_command(
    commands: Any,
    name: str,
    action: Action,
    text: str | None,
    creates_database: bool = False,
    patient: bool = True,
) -> argparse.ArgumentParser:
    """Add a command of `placement-manage` that uses the database, and return its parser.

    :param name: the words of the command
    :param creates_database: whether the command may create the file of an SQLite database
    :param patient: whether to wait for responses of the database without a time limit, and for the
        start of the database server if `[placement_database] max_retries` is set

    The other parameters are those of `add_command`.
    """
    parser = add_command(commands, f'placement-manage {name}', text)
    parser.set_defaults(action=functools.partial(_on_database, action, creates_database, patient))
    return parser


def add_options(parser: Any, text: str, **settings: Mapping[str, Any]) -> None:
    """Add the arguments of a command that a text lists.

    The line of an option has its name, and the name of its value if it has one; the line of a
    positional argument has the name of its value only. The indented lines below it are its help.

    :param parser: a parser, or a group of one
    :param settings: further parameters of `ArgumentParser.add_argument`, by the name of the option
    """
    for paragraph in re.split(r'\n(?=\S)', text.strip()):
        line, *lines = paragraph.splitlines()
        name, _, value = line.partition(' ')
        key = name.strip('-').replace('-', '_').lower()
        keywords: dict[str, Any] = {'metavar': value} if value else {'action': 'store_true'}
        if not name.startswith('-'):
            name, keywords = key, {'metavar': name}
        help_ = ' '.join(map(str.strip, lines))
        parser.add_argument(name, help=help_, **{**keywords, **settings.get(key, {})})


def number(least: int, most: int) -> Callable[[str], int]:
    """Return the `type` of an option whose value is a number from `least` to `most`."""

    def parse(text: str) -> int:
        # int() accepts forms such as 1_0, and raises ValueError for very long texts.
        if not (re.fullmatch('[0-9]{1,18}', text) and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)

    return parse


def words(text: str) -> list[str]:
    """Return the parts of the value of an option, which are separated by commas."""
    return [word.strip() for word in text.split(',')]


def _on_database(
    action: Action, creates_database: bool, patient: bool, config: cfg.ConfigOpts
) -> int:
    from placement.db import engine

    if not creates_database:
        require_file(config.placement_database.connection)
    if not patient:
        config.set_override('max_retries', 0, group='placement_database')
    engine.configure(config, patient=patient)
    return action(config)


def _show_help(parser: argparse.ArgumentParser, _config: cfg.ConfigOpts) -> int:
    parser.print_help()
    return 0


def main(
    name: str, destination: str, failed: int, add_commands: Callable[[Any], None], **texts: str
) -> int:
    """Execute the command that `sys.argv` names and return the exit status.

    :param name: the name of the program
    :param destination: the attribute of the configuration that contains the parsed command
    :param failed: the exit status after an error
    :param add_commands: adds the commands to the result of `ArgumentParser.add_subparsers`; each
        command has a description, and sets the default `action`
    :param texts: the `description` of the program, and the `epilog` of its help with the exit
        statuses
    """
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config.register_cli_opt(cfg.SubCommandOpt(destination, title='commands', handler=add_commands))
    # A command is executed by an operator or a deployment tool, which expects a result soon. Only
    # if the option is set, a command waits for a database server.
    config.set_default('max_retries', 0, group='placement_database')
    texts['epilog'] += f' {_ENVIRONMENT}'
    try:
        try:
            with sources.explaining_references(config):
                usage = '%(prog)s [options] COMMAND ...'
                sources.read(config, sys.argv[1:], name, usage=usage, **texts)
                return _execute(config, config[destination])
        finally:
            # argparse exits after it has printed the help, the version, or an error.
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output again when the process exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED
    except KeyboardInterrupt:
        print('Error: The command was interrupted.', file=sys.stderr)
        return _exit(failed)
    except Exception as error:
        from placement import messages

        if 'debug' in config and config.debug:
            traceback.print_exc()
        print(f'Error: {messages.sentence(error)}', file=sys.stderr)
        return failed


def _execute(config: cfg.ConfigOpts, command: Any) -> int:
    if getattr(command, 'validate', True):
        conf.validate(config)
        _set_up_logging(config)
    else:
        # The command reports invalid values, and logs as far as it can.
        with contextlib.suppress(cfg.Error):
            _set_up_logging(config)
    return int(command.action(config))


def _exit(status: int) -> NoReturn:
    """End the process without the destructors of objects.

    The destructor of a cursor of PyMySQL reads the rest of its result. If the result is incomplete,
    Python would print a traceback.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _set_up_logging(config: cfg.ConfigOpts) -> None:
    from oslo_log import log as logging

    from placement import messages

    # Log to standard error, so that standard output contains only the result of the command.
    config.set_default('use_stderr', True)
    if not config.debug:
        levels = [*logging.get_default_log_levels(), *_REPETITIVE]
        config.set_default('default_log_levels', levels)
    messages.set_up_log(config)
