"""The command `placement-manage`. Each command is in a module of this package."""

from collections.abc import Iterable
import functools
import importlib
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
    # The value of an option, and an argument of the command, can have the name of a command.
    named = [word for word in sys.argv[1:] if word in COMMANDS]
    return program.main(
        'placement-manage',
        'category',
        program.ERROR if named[:1] == ['db'] else program.CANNOT,
        functools.partial(_add_commands, named),
        description='Manage the database of Placement, and report what it contains.',
        epilog='Exit status: 0 the command succeeded, and has nothing to report; 1 the command '
        'succeeded, and found what its help describes, or a command of db failed; 2 the command '
        'failed, or the command line is not valid. An error is one sentence. db '
        'online_data_migrations has other exit statuses; see its help.',
    )


def _add_commands(named: Iterable[str], commands: Any) -> None:
    for module in dict.fromkeys(COMMANDS[command][0] for command in named):
        importlib.import_module(f'placement.cmd.{module}').add_commands(commands)
    for name, (_, text) in COMMANDS.items():
        if name not in commands.choices:
            commands.add_parser(name, help=text)


if __name__ == '__main__':
    sys.exit(main())
