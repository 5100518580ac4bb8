"""Follow the production guide on a bare Debian system: ``tox -e guide``.

The script installs Debian 12 in a temporary directory (debootstrap) and boots it (systemd-nspawn).
Nothing but systemd is installed there. Then the script executes every command for one machine of
``doc/source/install/production.rst`` in the order of the page. The script supplies only what the
page names as requirements: a Keystone with administrator credentials, the source of Placement, and
a name that resolves to the machine.

The script needs root and the Debian packages debootstrap and systemd-container. The booted system
uses the network of this machine, so the ports 80, 443, 3306, 8778 and 11211 must be free.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import os
from pathlib import Path
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from tools import guide
from tools.identity import servers

ROOT = Path(__file__).resolve().parent.parent
# The page requires the source in this directory, and the credentials in this file.
SOURCE = Path('usr/local/src/placement')
CREDENTIALS = Path('root/admin-openrc')
HOST = 'placement.example.org'
PORTS = (80, 443, 3306, 8778, 11211)

RELEASE = 'bookworm'
# systemd is what makes a directory bootable. Every installed Debian system has the other packages.
PACKAGES = 'systemd,systemd-sysv,dbus,ca-certificates,iproute2'
BOOT_SECONDS = 120
SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# Settings of pip and of proxies that this machine needs to reach the package indexes.
PASSED_ON = re.compile(r'PIP_(CERT|INDEX_URL|PROXY)|(http|https|no)_proxy', re.IGNORECASE)
CERTIFICATES = Path('/usr/local/share/ca-certificates')

CREDENTIALS_TEXT = """\
export OS_AUTH_URL={url}/v3
export OS_USERNAME=admin OS_PASSWORD={password} OS_PROJECT_NAME=admin
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default
export OS_IDENTITY_API_VERSION=3
"""


class Machine:
    """A booted Debian system in a directory of this machine.

    :param root: the directory
    :param leader: the process ID of its init process
    """

    def __init__(self, root: Path, leader: int) -> None:
        self.root = root
        self._leader = leader

    def run(self, script: str) -> int:
        """Execute a script with bash, print its output, and return its exit status."""
        environment = {
            'PATH': SEARCH_PATH,
            'HOME': '/root',
            'LANG': 'C.UTF-8',
            'DEBIAN_FRONTEND': 'noninteractive',
            **{name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)},
        }
        command = (
            *('nsenter', '--target', str(self._leader)),
            *('--mount', '--uts', '--ipc', '--pid'),
            *('env', '--chdir=/root', '--ignore-environment'),
            *(f'{name}={value}' for name, value in environment.items()),
            *('bash', '-eu', '-o', 'pipefail', '-c', script),
        )
        return subprocess.run(command, stdin=subprocess.DEVNULL).returncode


def main() -> int:
    """Follow the page and return 1 if a command failed."""
    parser = argparse.ArgumentParser(description='Follow the production guide on a bare system.')
    parser.add_argument('--mirror', help='Debian mirror (default: the default of debootstrap)')
    parser.add_argument(
        '--list', action='store_true', help='print the commands instead of executing them'
    )
    options = parser.parse_args()
    page = guide.blocks()
    if options.list:
        print(script(page))
        return 0
    _check_requirements()
    with (
        tempfile.TemporaryDirectory(prefix='placement-guide-') as folder,
        servers.keystone(Path(folder)) as url,
        machine(Path(folder), options.mirror) as debian,
    ):
        _supply_requirements(debian.root, url)
        status = debian.run(script(page))
        if status:
            debian.run('journalctl --no-pager --lines 60; tail -n 20 /var/log/apache2/*.log')
    commands = sum(len(block.commands.splitlines()) for block in page)
    print(f'{len(page)} blocks with {commands} lines: exit status {status}')
    print(f'{int(not status)} passed, {int(status != 0)} failed')
    return int(status != 0)


def script(page: Sequence[guide.Block]) -> str:
    """Return one script with all blocks, because later blocks use variables of earlier blocks."""
    return '\n'.join(
        f"printf '\\n== block {number}: %s\\n' {shlex.quote(block.section)}\nset -x\n"
        f'{block.commands.rstrip()}\n{{ set +x; }} 2>/dev/null'
        for number, block in enumerate(page, 1)
    )


def _check_requirements() -> None:
    if os.getuid() != 0:
        sys.exit('production_guide.py: only root can boot a system in a directory.')
    missing = [name for name in ('debootstrap', 'systemd-nspawn') if not shutil.which(name)]
    if missing:
        sys.exit(
            f'production_guide.py: missing {", ".join(missing)}. On Debian and Ubuntu, install the '
            'packages debootstrap and systemd-container.'
        )
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                sys.exit(f'production_guide.py: port {port} of this machine is in use.')


@contextlib.contextmanager
def machine(folder: Path, mirror: str | None) -> Iterator[Machine]:
    """Install and boot a Debian system in a directory while the context is active."""
    root = folder / 'debian'
    print(f'== Installing Debian ({RELEASE})', flush=True)
    bootstrap = ['debootstrap', '--variant=minbase', f'--include={PACKAGES}', RELEASE, str(root)]
    bootstrap += [mirror] if mirror else []
    completed = subprocess.run(bootstrap, stdout=subprocess.PIPE, text=True)
    if completed.returncode:
        raise RuntimeError(f'debootstrap failed:\n{completed.stdout[-2000:]}')
    command = (
        *('systemd-nspawn', '--quiet', '--boot', f'--directory={root}', '--register=no'),
        *('--keep-unit', '--resolv-conf=copy-host', '--console=pipe', '--hostname=placement'),
    )
    with (folder / 'boot.log').open('wb') as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield _booted(root, process)
    finally:
        # systemd-nspawn forwards this signal as a request to shut down.
        process.terminate()
        try:
            process.wait(BOOT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _booted(root: Path, process: 'subprocess.Popen[bytes]') -> Machine:
    """Return the machine after its start is complete."""
    children = Path(f'/proc/{process.pid}/task/{process.pid}/children')
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        leaders = children.read_text().split()
        if leaders:
            debian = Machine(root, int(leaders[0]))
            if debian.run('systemctl is-system-running --wait >/dev/null 2>&1') == 0:
                return debian
        time.sleep(0.5)
    raise RuntimeError(f'The system does not boot; see {root.parent}/boot.log')


def _supply_requirements(root: Path, keystone: str) -> None:
    """Supply what the page requires: the source, credentials, a host name and CA certificates."""
    print('== Supplying the requirements of the page', flush=True)
    source = root / SOURCE
    subprocess.run(('git', 'clone', '--quiet', ROOT, source), check=True)
    # The commands run as root, but the clone can belong to another user of this machine.
    shutil.rmtree(source / '.git' / 'hooks', ignore_errors=True)
    (root / CREDENTIALS).write_text(
        CREDENTIALS_TEXT.format(url=keystone, password=servers.PASSWORD)
    )
    (root / 'etc' / 'hosts').write_text(f'127.0.0.1 localhost {HOST}\n')
    target = root / CERTIFICATES.relative_to('/')
    for certificate in CERTIFICATES.glob('*.crt'):
        shutil.copy(certificate, target)
    shutil.copy('/etc/ssl/certs/ca-certificates.crt', root / 'etc/ssl/certs/ca-certificates.crt')


if __name__ == '__main__':
    sys.exit(main())
