"""The command `placement-manage`. Each group of its subcommands is a module of this package."""

import sys
from typing import Any

from placement.cmd import (
    audit,
    db,
    drain,
    explain,
    exporter,
    headroom,
    program,
    rename_uuid,
    report,
    transfer,
)

_GROUPS = (db, explain, headroom, drain, audit, rename_uuid, transfer, report, exporter)


def main() -> int:
    """Execute the command that `sys.argv` names and return its exit status."""
    return program.main(
        program.Program(
            name='placement-manage',
            description='Manage the database of Placement, and report what it contains.',
            exit_statuses='  0  the command succeeded, and has nothing to report\n'
            '  1  db: the command failed, and printed the reason\n'
            '     other commands: the command succeeded, and found what its help describes\n'
            '  2  the command failed, and printed the reason, or the command line is not valid\n'
            '  db online_data_migrations has other exit statuses; see its help\n',
            destination='category',
            add_commands=_add_commands,
            failed=program.CANNOT,
        )
    )


def _add_commands(commands: Any) -> None:
    for group in _GROUPS:
        group.add_commands(commands)


if __name__ == '__main__':
    sys.exit(main())
