"""The command `placement-manage`. Each command is in a module of this package."""

import functools
import importlib
import itertools
import re
import sys
from typing import Any

from placement.cmd import program

# For each command, its module and its line in the help. Only the module of the command that is
# executed is imported, because all of them together take a second.
COMMANDS = {
    'db': ('db', 'Migrate the schema and the data of the database.'),
    'explain': ('explain', 'Explain why a query has no allocation candidates.'),
    'headroom': ('headroom', 'Count how many more claims of a query fit.'),
    'drain': ('drain', 'Find out whether the consumers of provider trees fit elsewhere.'),
    'audit': ('audit', 'Find data that no request of this release can write, and correct it.'),
    'rename-uuid': ('rename_uuid', 'Give the data of a root provider to another UUID.'),
    'export': ('transfer', 'Write the contents of the database to a file.'),
    'import': ('transfer', 'Insert the contents of a file into an empty database.'),
    'report': ('report', 'Write an HTML page that shows the contents of the database.'),
    'exporter': ('exporter', 'Export the capacity of the cloud as metrics for Prometheus.'),
}


def main() -> int:
    """Execute the command that `sys.argv` names and return its exit status."""
    command = _command()
    return program.main(
        'placement-manage',
        'category',
        program.ERROR if command == 'db' else program.CANNOT,
        functools.partial(_add_commands, command),
        description='Manage the database of Placement, and report what it contains.',
        epilog='Exit status: 0 the command succeeded, and has nothing to report; 1 the command '
        'succeeded, and found what its help describes, or a command of db failed; 2 the command '
        'failed, or the command line is not valid. An error is one sentence. db '
        'online_data_migrations has other exit statuses; see its help.',
    )


def _command() -> str | None:
    """Return the command that `sys.argv` names; an option before it can name a file like it."""
    return next(
        (
            word
            for before, word in itertools.pairwise(sys.argv)
            if word in COMMANDS and not re.fullmatch('--(config|log)[a-z-]*', before)
        ),
        None,
    )


def _add_commands(command: str | None, commands: Any) -> None:
    if command is not None:
        module, _ = COMMANDS[command]
        importlib.import_module(f'placement.cmd.{module}').add_commands(commands)
    for name, (_, text) in COMMANDS.items():
        if name not in commands.choices:
            commands.add_parser(name, help=text)


if __name__ == '__main__':
    sys.exit(main())
