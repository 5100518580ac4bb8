"""The systemd units run without privileges."""

import argparse
import os
import re
import shlex
import subprocess
import sys

import requests

from placement.cmd import exporter
from placement.tests import where
from placement.tests.functional.deployment import base, files, restrictions
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands
from placement.tests.waiting import LONGEST

UNIT = 'systemd/placement.service'
EXPORTER = 'systemd/placement-exporter.service'
# The largest exposure that `systemd-analyze security` may report, in tenths.
EXPOSURE = 17
# The restrictions of the kernel that could break a compiled dependency or a reader of /proc.
RESTRICTIONS = {
    UNIT: {'MemoryDenyWriteExecute=true', 'ProcSubset=pid'},
    EXPORTER: {'MemoryDenyWriteExecute=true', 'ProcSubset=pid', 'PrivateUsers=true'},
}


def command(name: str, number: int = 0, unit: str = UNIT, **variables: str) -> list[str]:
    """Return a command of a unit as a list of arguments.

    :param name: the option, for example `ExecStop`
    :param number: the index of the command if the option has several
    """
    text = files.read(unit, {'/opt/placement': sys.prefix})
    line = re.findall(rf'^{name}=-?(.+)$', text, re.M)[number]
    for variable, value in variables.items():
        line = line.replace(f'${variable}', value)
    return shlex.split(line.replace('$$', '$'))


class UnitTest(base.TestCase):
    def test_systemd_accepts_the_units(self) -> None:
        analyze = commands.program('systemd-analyze')
        for name in (UNIT, EXPORTER):
            unit = self.folder / name.rpartition('/')[2]
            unit.write_text(files.read(name, files.programs(name)))
            verified = subprocess.run((analyze, 'verify', unit), capture_output=True, text=True)
            self.assertEqual((0, ''), (verified.returncode, verified.stderr))
            security = ('security', '--offline=true', f'--threshold={EXPOSURE}', unit)
            checked = subprocess.run((analyze, *security), capture_output=True, text=True)
            self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)

    def test_the_command_of_the_exporter_is_valid(self) -> None:
        """It listens on the default address, and only programs on this machine can connect."""
        (program, *arguments) = command('ExecStart', unit=EXPORTER)
        self.assertEqual(f'{sys.prefix}/bin/placement-manage', program)
        parser = argparse.ArgumentParser()
        exporter.add_commands(parser.add_subparsers())
        self.assertEqual(exporter.ADDRESS, parser.parse_args(arguments).listen)
        self.assertRegex(exporter.ADDRESS, r'^127\.0\.0\.1:\d+$')

    def test_a_reload_fails_if_the_configuration_is_not_usable(self) -> None:
        environment = {**os.environ, 'OS_PLACEMENT_CONFIG_DIR': str(self.folder)}
        check = command('ExecReload')
        failed = subprocess.run(check, env=environment, capture_output=True)
        self.assertEqual(1, failed.returncode, failed.stderr)
        (self.folder / 'placement.conf').write_text(
            '[api]\nauth_strategy = noauth2\n'
            '[placement_database]\nconnection = sqlite://\nsync_on_startup = true\n'
        )
        succeeded = subprocess.run(check, env=environment, capture_output=True)
        self.assertEqual(0, succeeded.returncode, succeeded.stderr)

    def test_uwsgi_stops_even_if_it_is_still_starting(self) -> None:
        uwsgi = self.started(self.stack().uwsgi())
        stop = subprocess.Popen(command('ExecStop', MAINPID=str(uwsgi.pid)))
        self.addCleanup(stop.wait)
        self.assertEqual(0, uwsgi.wait())
        log = (self.folder / 'uwsgi.log').read_text()
        self.assertIn('goodbye to uWSGI', log)


@where.at_night('The servers take minutes.')
class RestrictionsTest(base.TestCase):
    def wrapper(self, unit: str) -> list[str]:
        """Return the command that applies the restrictions of a unit."""
        lines = set(files.read(unit, {}).splitlines())
        self.assertLessEqual(RESTRICTIONS[unit], lines)
        wrapper = restrictions.wrapper(RESTRICTIONS[unit])
        if refusal := restrictions.refusal(wrapper):
            self.skipTest(f'needs root and Linux 6.3: {refusal}')
        return wrapper

    def test_uwsgi_serves_and_stops(self) -> None:
        """Placement can create and lock the files of metrics, although most of /proc is hidden."""
        wrapper = self.wrapper(UNIT)
        uwsgi = self.started(self.stack().uwsgi(wrapper=wrapper))
        url = f'http://127.0.0.1:{uwsgi.port}/placement'
        for path in ('/healthcheck', '/metrics'):
            self.assertEqual(200, requests.get(url + path, timeout=LONGEST).status_code, path)
        counters = [*(self.folder / 'uwsgi' / 'metrics').glob('counter_*.db')]
        self.assertEqual(1, len(counters), counters)
        stop = subprocess.Popen((*wrapper, *command('ExecStop', MAINPID=str(uwsgi.pid))))
        self.addCleanup(stop.wait)
        self.assertEqual(0, uwsgi.wait())

    def test_the_exporter_serves(self) -> None:
        wrapper = self.wrapper(EXPORTER)
        url = f'sqlite:///{self.folder}/placement.db'
        environment = {**os.environ, 'OS_PLACEMENT_DATABASE__CONNECTION': url}
        manage = [*wrapper, sys.executable, '-m', 'placement.cmd.manage']
        subprocess.run((*manage, 'db', 'sync'), env=environment, check=True, capture_output=True)
        arguments = [*manage, 'exporter', '--listen']
        exporter = self.started(
            machines.Worker(url, lambda port: [*arguments, f'127.0.0.1:{port}'])
        )
        response = requests.get(f'http://127.0.0.1:{exporter.port}/metrics', timeout=LONGEST)
        self.assertIn('\nplacement_up 1.0\n', response.text)
