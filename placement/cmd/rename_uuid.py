"""Give the data of a root provider to another UUID.

If no provider has the UUID NEW, the provider OLD gets this UUID. Otherwise the allocations,
children, traits, and aggregates of OLD move to NEW, which keeps its inventories, and OLD is
deleted. Before the command, nova-compute of the host must be stopped, because it writes the same
rows.

Exit status: 0 the rows were changed, or printed with --dry-run; 2 nothing was changed.
"""

import shlex
from typing import Any

from oslo_config import cfg

from placement.admin import rename_uuid
from placement.cmd import output, program

_OPTIONS = """
OLD
    the name or the UUID of a root provider
NEW
    the UUID that the host has now, or the name of the provider with this UUID
--dry-run
    print the rows that would change, and change none
--yes
    do not ask
"""


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'rename-uuid', _rename, __doc__)
    program.add_options(parser, _OPTIONS)


def _rename(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    old, new = arguments.old.strip(), arguments.new.strip()
    is_confirmed = arguments.yes and not arguments.dry_run
    changes = (rename_uuid.rename if is_confirmed else rename_uuid.plan)(old, new)
    output.print_text('\n'.join(changes))
    if arguments.dry_run:
        command = shlex.join(('placement-manage', 'rename-uuid', old, new))
        output.notify(f'Nothing was changed. Stop nova-compute of the host. Next: {command}')
        return 0
    if not is_confirmed:
        output.confirm(
            'The change',
            'stop nova-compute of the host',
            'These rows change. Before that, nova-compute of the host must be stopped, because it '
            'writes the same rows.',
            'Type yes to change them: ',
        )
        rename_uuid.rename(old, new, changes)
    output.notify('These rows were changed. Next: start nova-compute of the host.')
    return 0
