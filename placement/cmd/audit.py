"""Find data that no request of this release can write, and correct it.

Exit status: 0 nothing was found but notices, or everything else was corrected; 1 errors are left; 2
the command line is not valid, or the database cannot be read or written.
"""

import dataclasses
from typing import Any

from oslo_config import cfg

from placement.cmd import output, program

_WRITERS = (
    'It is safe only while nothing writes to the database: stop all processes of Placement, and '
    'all other programs that write to it'
)
_OPTIONS = f"""
--only CODE[,CODE...]
    check and correct only these codes, which the report names
--fix
    correct what has a safe correction; the service can continue to run
--purge
    delete projects, users, consumer types and aggregates that are not used. {_WRITERS}
--servers FILE
    the output of `openstack server list --all-projects --limit -1 -f json`: also find consumers
    without a server, and servers without allocations
--yes
    do not ask before --purge
"""


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'audit', _audit, __doc__)
    program.add_options(parser, _OPTIONS, only={'type': program.words})
    output.add_names_option(parser)
    output.add_format_option(parser)


def _audit(config: cfg.ConfigOpts) -> int:
    from placement.admin import console
    from placement.admin.audit import model, render, run

    given = config.category
    options = run.Options(given.only, given.fix, given.purge, given.servers)
    options.codes()
    known = console.read_names(given.names)
    if options.purge and not given.yes:
        output.confirm(
            '--purge',
            'stop everything that writes to the database',
            f'--purge deletes rows. {_WRITERS}.',
            'Type yes if they are stopped: ',
        )
    findings = run.run(config, options, output.progress)
    if given.format == output.JSON:
        output.print_document({'findings': list(map(dataclasses.asdict, findings))})
    else:
        output.print_text(render.report(findings, known))
    return int(any(one.severity == model.ERROR and one.left for one in findings))
