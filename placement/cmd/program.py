"""The common parts of the commands: command line, configuration, log, and errors."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
import functools
import os
import signal
import sys
import traceback
from typing import Any, NoReturn

from oslo_config import cfg
from oslo_log import log as logging

from placement import conf, messages, version
from placement.admin.failure import CannotProceedError
from placement.conf import database_url, sources
from placement.db import engine

Action = Callable[[cfg.ConfigOpts], int]

# The exit status of a command of `placement-manage db` that failed.
ERROR = 1
# The exit status of the other commands of `placement-manage` if they cannot do their work.
CANNOT = 2
# The exit status if the reader of the output closes it, for example `head`: that of a program that
# the signal SIGPIPE ends.
CLOSED = 128 + signal.SIGPIPE

# Both commands print these paragraphs at the end of their help.
_ENVIRONMENT = f"""environment variables:
  {sources.CONFIG_DIR}  read placement.conf in this directory and no other file
  OS_<GROUP>__<OPTION>     set an option, for example OS_PLACEMENT_DATABASE__CONNECTION
"""

# The options of oslo.log, with shorter help texts: flags, metavar, and help. Options without a
# metavar have no value. Options without a help text are not displayed.
_LOG_OPTIONS: tuple[tuple[tuple[str, ...], str | None, str | None], ...] = (
    (('--debug', '-d'), None, 'log at level DEBUG, and print the traceback of an error'),
    (('--log-file', '--logfile'), 'PATH', 'write the log to this file'),
    (('--log-dir', '--logdir'), 'DIR', 'directory of a relative --log-file'),
    (('--log-date-format',), 'FORMAT', 'format of times in the log'),
    (('--log-config-append', '--log-config', '--log_config'), 'PATH', 'file with a log setup'),
    (('--use-syslog',), None, 'log to syslog'),
    (('--syslog-log-facility',), 'FACILITY', 'syslog facility'),
    (('--use-journal',), None, 'log to the journal of systemd'),
    (('--use-json',), None, 'log in JSON'),
    (('--nodebug',), None, None),
    (('--nouse-syslog',), None, None),
    (('--nouse-journal',), None, None),
    (('--nouse-json',), None, None),
)

# These loggers report failures that a command reports in its error message, too.
_REPETITIVE_LOGGERS = (
    'placement.db.engine=ERROR',
    'placement.db.failures=CRITICAL',
    'oslo_db.sqlalchemy.engines=ERROR',
    'oslo_db.sqlalchemy.exc_filters=CRITICAL',
)


@dataclass(frozen=True, slots=True)
class Program:
    """A command-line program.

    :ivar name: the name of the program
    :ivar description: what the program does
    :ivar exit_statuses: a line for each exit status
    :ivar destination: the attribute of the configuration that contains the parsed command
    :ivar add_commands: adds the commands to the result of `ArgumentParser.add_subparsers`; each
        command has a description, and sets the default `action`
    :ivar failed: the exit status after an error, unless the command has the default `failed`
    """

    name: str
    description: str
    exit_statuses: str
    destination: str
    add_commands: Callable[[Any], None]
    failed: int


def subcommands(parser: argparse.ArgumentParser, required: bool) -> Any:
    """Return the object that adds subcommands to a command.

    :param required: whether the command line is not valid without a subcommand; otherwise, the
        command prints its help without a subcommand, and does not read the configuration
    """
    added = parser.add_subparsers(title='subcommands', metavar='SUBCOMMAND', required=required)
    parser.set_defaults(
        action=functools.partial(_show_help, parser), help_only=True, subcommands=added
    )
    return added


def add_database_command(
    commands: Any,
    name: str,
    action: Action,
    text: str,
    failed: int = CANNOT,
    creates_database: bool = False,
    patient: bool = True,
) -> argparse.ArgumentParser:
    """Add a command that uses the database, and return its parser.

    :param commands: the result of `ArgumentParser.add_subparsers` or of `subcommands`
    :param text: the description of the command
    :param failed: the exit status after an error
    :param creates_database: whether the command may create the file of an SQLite database
    :param patient: whether to wait for responses of the database without a time limit, and for the
        start of the database server if `[placement_database] max_retries` is set
    """
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(
        action=functools.partial(_on_database, action, creates_database, patient),
        help_only=False,
        failed=failed,
    )
    return parser


def _on_database(
    action: Action, creates_database: bool, patient: bool, config: cfg.ConfigOpts
) -> int:
    file = database_url.file_of(config.placement_database.connection)
    if file and not creates_database and not file.exists():
        # SQLite would create an empty file.
        raise CannotProceedError(
            f'The database file {file} does not exist. Run `placement-manage db sync`, or correct '
            '[placement_database] connection.'
        )
    if not patient:
        config.set_override('max_retries', 0, group='placement_database')
    engine.configure(config, patient=patient)
    return action(config)


def _show_help(parser: argparse.ArgumentParser, _config: cfg.ConfigOpts) -> int:
    parser.print_help()
    return 0


def main(program: Program) -> int:
    """Execute the command that `sys.argv` names and return the exit status."""
    try:
        try:
            return _main(program)
        except SystemExit:
            # argparse has printed the help, the version, or an error in the command line.
            sys.stdout.flush()
            raise
    except BrokenPipeError:
        # Python flushes standard output again when the process exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED


def _main(program: Program) -> int:
    arguments = sys.argv[1:]
    given = _parser(program).parse_args(arguments)
    config = cfg.ConfigOpts()
    if given.help_only:
        help_: Action = given.action
        status = help_(config)
        sys.stdout.flush()
        return status
    try:
        with sources.explaining_references(config):
            status = _execute(program, config, arguments, given.validate)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _exit(_failed(program, given, 'The command was interrupted.'))
    except Exception as error:
        if given.debug or ('debug' in config and config.debug):
            traceback.print_exc()
        return _failed(program, given, messages.sentence(error))
    return status


def _execute(program: Program, config: cfg.ConfigOpts, arguments: list[str], validate: bool) -> int:
    _read(program, config, arguments)
    if validate:
        conf.validate(config)
    _set_up_logging(config)
    action: Action = config[program.destination].action
    return action(config)


def _exit(status: int) -> NoReturn:
    """End the process without the destructors of objects.

    The destructor of a cursor of PyMySQL reads the rest of its result. If the result is incomplete,
    Python would print a traceback.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _failed(program: Program, given: argparse.Namespace, sentence: str) -> int:
    print(f'Error: {sentence}', file=sys.stderr)
    status: int = getattr(given, 'failed', program.failed)
    return status


def _read(program: Program, config: cfg.ConfigOpts, arguments: list[str]) -> None:
    conf.register_opts(config)
    config.register_cli_opt(cfg.SubCommandOpt(program.destination, handler=program.add_commands))
    # A command is executed by an operator or a deployment tool, which expects a result soon. Only
    # if the option is set, a command waits for a database server.
    config.set_default('max_retries', 0, group='placement_database')
    sources.read(config, arguments, program.name)


def _set_up_logging(config: cfg.ConfigOpts) -> None:
    # Log to standard error, so that standard output contains only the result of the command.
    config.set_default('use_stderr', True)
    if not config.debug:
        levels = [*logging.get_default_log_levels(), *_REPETITIVE_LOGGERS]
        config.set_default('default_log_levels', levels)
    messages.set_up_log(config)


def _parser(program: Program) -> argparse.ArgumentParser:
    """Return a parser that checks the whole command line and prints help.

    oslo.config parses the command line afterwards. Its own parser lists all options before the
    commands, with help texts of the size of a page, and has the option `--shell_completion`, whose
    templates are missing in released versions.
    """
    parser = argparse.ArgumentParser(
        prog=program.name,
        usage='%(prog)s [options] COMMAND ...',
        description=program.description,
        epilog=f'exit status:\n{program.exit_statuses}\n{_ENVIRONMENT}',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.set_defaults(help_only=False, validate=True)
    commands = parser.add_subparsers(
        prog=program.name, metavar='COMMAND', required=True, help=argparse.SUPPRESS
    )
    program.add_commands(commands)
    parser.add_argument_group('commands', ''.join(_lines(commands)))
    options = parser.add_argument_group('options')
    options.add_argument('-h', '--help', action='help', help='print this help and exit')
    options.add_argument(
        '--version',
        action='version',
        version=version.version_string(),
        help='print the version and exit',
    )
    options.add_argument(
        '--config-file',
        metavar='PATH',
        action='append',
        help='read this file instead of the default files; can be repeated',
    )
    options.add_argument('--config-dir', metavar='DIR', help='read all *.conf files in here')
    _add_log_options(parser.add_argument_group('options of the log'))
    return parser


def _lines(commands: Any, prefix: str = '') -> Iterator[str]:
    """Yield a line for each command: its name, and the first sentence of its description."""
    for name, parser in commands.choices.items():
        if nested := parser.get_default('subcommands'):
            yield from _lines(nested, f'{name} ')
        else:
            text = parser.description.partition('. ')[0].removesuffix('.')
            yield f'{prefix + name:28}{text}.\n'


def _add_log_options(group: Any) -> None:
    for flags, metavar, text in _LOG_OPTIONS:
        if metavar is None:
            group.add_argument(*flags, action='store_true', help=text or argparse.SUPPRESS)
        else:
            group.add_argument(*flags, metavar=metavar, help=text)
