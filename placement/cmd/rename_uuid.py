"""The command `placement-manage rename-uuid`."""

import shlex
from typing import Any

from oslo_config import cfg

from placement.admin import rename_uuid
from placement.cmd import output, program

_TEXT = 'Give the data of a root provider to another UUID.'
_STOPPED = 'nova-compute of the host must be stopped, because it writes the same rows'


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'rename-uuid', _rename, _TEXT)
    parser.epilog = (
        f'Before the command, {_STOPPED}. If no provider has the UUID NEW, the provider OLD gets '
        'this UUID. Otherwise the allocations, children, traits, and aggregates of OLD move to '
        'NEW, which keeps its inventories, and OLD is deleted. Exit status: 0 the rows were '
        'changed, or printed with --dry-run; 2 nothing was changed.'
    )
    parser.add_argument('old', metavar='OLD', help='the name or the UUID of a root provider')
    parser.add_argument(
        'new',
        metavar='NEW',
        help='the UUID that the host has now, or the name of the provider with this UUID',
    )
    parser.add_argument(
        '--dry-run', action='store_true', help='print the rows that would change, and change none'
    )
    parser.add_argument('--yes', action='store_true', help='do not ask')


def _rename(config: cfg.ConfigOpts) -> int:
    arguments = config.category
    old, new = arguments.old.strip(), arguments.new.strip()
    if arguments.yes and not arguments.dry_run:
        output.print_text('\n'.join(rename_uuid.rename(old, new)))
        output.notify('These rows were changed. Next: start nova-compute of the host.')
        return 0
    changes = rename_uuid.plan(old, new)
    output.print_text('\n'.join(changes))
    if arguments.dry_run:
        command = shlex.join(('placement-manage', 'rename-uuid', old, new))
        output.notify(f'Nothing was changed. Stop nova-compute of the host. Next: {command}')
        return 0
    output.confirm(
        'The change',
        'stop nova-compute of the host',
        f'These rows change. Before that, {_STOPPED}.',
        'Type yes to change them: ',
    )
    rename_uuid.rename(old, new, changes)
    output.notify('These rows were changed. Next: start nova-compute of the host.')
    return 0
