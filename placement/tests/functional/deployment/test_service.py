"""The systemd units and the container image run without privileges."""

import argparse
import os
import re
import shlex
import subprocess
import sys

from placement.admin.capacity_metrics import listen_address
from placement.cmd import exporter
from placement.tests.functional.deployment import base, files
from placement.tests.functional.web import commands

UNIT = 'systemd/placement.service'
EXPORTER = 'systemd/placement-exporter.service'
# The largest exposure of `systemd-analyze security` that it calls "OK", in tenths.
EXPOSURE = 20


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
            unit.write_text(files.read(name, {'/opt/placement': sys.prefix}))
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
        self.assertEqual('127.0.0.1', listen_address.parse(exporter.ADDRESS).host)

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


class ContainerTest(base.TestCase):
    def test_the_image_serves_http_without_a_unix_socket(self) -> None:
        instructions = (files.ETC / 'container' / 'Containerfile').read_text().replace('\\\n', ' ')
        (expressions,) = re.findall(r'sed (-e .+) /opt\S+/placement\.ini >', instructions)
        ini = files.ETC / 'uwsgi' / 'placement.ini'
        changed = subprocess.check_output(('sed', *shlex.split(expressions), ini), text=True)
        sockets = [line for line in changed.splitlines() if re.match(r'[a-z-]*socket =', line)]
        self.assertEqual(['http-socket = :8778'], sockets)

        image = instructions[instructions.rindex('FROM') :]
        self.assertRegex(image, r'USER placement\n(.+\n)*CMD \["uwsgi", "--ini", "/etc/')
        (probe,) = re.findall(r'HEALTHCHECK .*CMD \["python", "-c", +"(.+)"\]', image)
        compile(probe, 'HEALTHCHECK', 'exec')
        self.assertNotRegex(image, '(?i)password|secret|connection')
