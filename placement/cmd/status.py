"""The command `placement-status`, which checks whether an upgrade or a rollout is possible."""

import contextlib
import logging
import sys
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from placement.admin.preflight import configuration, report, settings
from placement.cmd import output, program
from placement.db import engine as db_engine

# The exit status if a check cannot run. Smaller values are the results of the checks.
ERROR = 255

# The size of the deployment, which no configuration file contains: options of preflight, whose
# default is 1.
_SIZES = {
    'machines': 'machines that run the service',
    'processes': 'processes of the service on each machine',
    'threads': 'threads of each process',
}


def main() -> int:
    """Execute the command that `sys.argv` names and return its exit status."""
    return program.main(
        'placement-status',
        'command',
        ERROR,
        _add_commands,
        description='Check an upgrade or a rollout. The commands change nothing.',
        epilog='Exit status: 0 all checks succeeded; 1 at least one check printed a warning, and '
        'none failed; 2 at least one check failed, or the command line is not valid; 255 a check '
        'could not run, or the configuration is not valid.',
    )


def _add_commands(commands: Any) -> None:
    text = 'Check whether this release can use the data and the policy file: upgrade check.'
    upgrade = program.add_command(commands, 'placement-status upgrade', text)
    upgrade.add_argument('check', choices=['check'], metavar='check', help='execute the checks')
    upgrade.add_argument('--json', action='store_true', help='print JSON instead of a table')
    upgrade.set_defaults(action=_upgrade_check)
    text = 'Check everything that can be checked before a rollout.'
    before = program.add_command(commands, 'placement-status preflight', text)
    output.add_format_option(before)
    text = 'list the checks that succeeded or were skipped, too'
    before.add_argument('--all', action='store_true', help=text)
    number = program.number(1, 999_999)
    for name, text in _SIZES.items():
        text = f'the number of {text}; default: %(default)s'
        before.add_argument(f'--{name}', metavar='N', type=number, default=1, help=text)
    # Invalid values are findings. They do not prevent the other checks.
    before.set_defaults(action=_preflight, validate=False)


def _upgrade_check(config: cfg.ConfigOpts) -> int:
    db_engine.configure(config, patient=True)
    # oslo.upgradecheck reads the option --json from this module variable.
    upgradecheck.CONF = config
    with db_engine.snapshot() as conn:
        return int(settings.UpgradeChecks(config, conn).check())


def _preflight(config: cfg.ConfigOpts) -> int:
    if not configuration.is_debug_on_command_line(config):
        # The report contains everything that libraries log about the same problems.
        logging.disable(logging.CRITICAL)
    # The messages of failures name the database.
    with contextlib.suppress(ValueError, cfg.Error):
        db_engine.configure(config, patient=True)
    findings = report.run(config)
    if config.command.format == output.JSON:
        output.print_document({'checks': findings})
    else:
        output.print_text(report.table(findings, config.command.all))
    return max(report.RESULTS[one['result']] for one in findings)


if __name__ == '__main__':
    sys.exit(main())
