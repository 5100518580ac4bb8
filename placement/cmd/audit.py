"""The command `placement-manage audit`."""

from typing import Any

from oslo_config import cfg

from placement.admin import names
from placement.admin.audit import model, render, repair, servers
from placement.cmd import output, program

_TEXT = 'Find data that no request of this release can write, and correct it.'
_WRITERS = (
    'It is safe only while nothing writes to the database: stop all processes of Placement, and '
    'all other programs that write to it'
)


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'audit', _audit, _TEXT)
    parser.epilog = (
        f'The codes are {", ".join(model.NAMES)}. Exit status: 0 nothing was found but notices, '
        'or everything else was corrected; 1 errors are left; 2 the command line is not valid, or '
        'the database cannot be read or written.'
    )
    parser.add_argument(
        '--only',
        metavar='CODE[,CODE...]',
        type=lambda text: [code.strip() for code in text.split(',')],
        help='check and correct only these codes',
    )
    parser.add_argument(
        '--fix',
        action='store_true',
        help='correct what has a safe correction; the service can continue to run',
    )
    parser.add_argument(
        '--purge',
        action='store_true',
        help=f'delete projects, users, consumer types and aggregates that are not used. {_WRITERS}',
    )
    parser.add_argument(
        '--servers',
        metavar='FILE',
        help='the output of `openstack server list --all-projects --limit -1 -f json`, for the '
        f'codes {" and ".join(servers.CODES)}',
    )
    parser.add_argument('--yes', action='store_true', help='do not ask before --purge')
    output.add_names_option(parser)
    output.add_format_option(parser)


def _audit(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    options = repair.Options(arguments.only, arguments.fix, arguments.purge, arguments.servers)
    repair.check_options(options)
    known = names.read(arguments.names)
    if options.purge and not arguments.yes:
        _confirm()
    findings = repair.run(config, options, output.progress)
    if arguments.format == output.JSON:
        output.print_document(render.document(findings))
    else:
        output.print_text(render.report(known.in_values(findings)))
    return model.exit_status(findings)


def _confirm() -> None:
    """Ask the operator on the terminal whether all writers are stopped."""
    output.confirm(
        '--purge',
        'stop everything that writes to the database',
        f'--purge deletes rows. {_WRITERS}.',
        'Type yes if they are stopped: ',
    )
