"""Starts uWSGI and the web servers of a test with the files in etc/."""

from collections.abc import Callable, Mapping, Sequence
import grp
import os
from pathlib import Path
import pwd
import shutil
import sys

from placement.tests.functional.deployment import files
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands

_APACHE_MODULES = (
    'mpm_event',
    'authz_core',
    'authz_host',
    'headers',
    'socache_shmcb',
    'ssl',
    'reqtimeout',
    'alias',
    'buffer',
    'env',
    'proxy',
    'proxy_http',
)
_NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr info;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    uwsgi_temp_path {folder}/uwsgi;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    include {site};
}}
"""


def user() -> tuple[str, str]:
    """Return the names of the user and the group of the servers."""
    if os.getuid() == 0:
        return 'nobody', 'nogroup'
    return pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name


class Stack:
    """Starts servers that use one database.

    :param folder: an empty directory for all files of the servers
    :param prefix: `/placement`, or an empty text to serve Placement without a path prefix
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.certificate = commands.certificate(folder)

    def uwsgi(
        self,
        name: str = 'uwsgi',
        *,
        processes: int = 1,
        harakiri: int = 120,
        wrapper: Sequence[str] = (),
        file: str = 'uwsgi/placement.ini',
        settings: Mapping[str, str] | None = None,
    ) -> machines.Worker:
        """Start uWSGI, with fewer processes than in the file, because each start takes seconds.

        :param name: the directory of its sockets
        :param harakiri: the maximum time of a request in seconds
        :param wrapper: a command that executes uWSGI, with its first arguments
        :param file: the configuration, below etc/ or with its absolute path
        :param settings: additional environment variables
        """
        program = commands.program('uwsgi')
        run = self.folder / name
        (run / 'metrics').mkdir(parents=True)

        def command(port: int) -> Sequence[str]:
            values = {
                '/opt/placement': sys.prefix,
                '/run/placement': str(run),
                'placement:www-data': ':'.join(user()),
                ':8778': f':{port}',
                'processes = 4': f'processes = {processes}',
                'harakiri = 120': f'harakiri = {harakiri}',
            }
            (run / 'placement.ini').write_text(files.read(file, values, self.prefix))
            # As another user, uWSGI does not find the virtual environment in a private directory.
            return [*wrapper, program, '--ini', str(run / 'placement.ini')]

        worker = self._start(name, command, settings)
        self._port = worker.port
        return worker

    def apache(self, kind: str) -> machines.Worker:
        """Start Apache.

        :param kind: `wsgi` to run Placement with mod_wsgi, `uwsgi` to forward requests to uWSGI
        """
        wsgi = [commands.wsgi_module()] if kind == 'wsgi' else []
        folder = self._folder(f'apache-{kind}')

        def command(port: int) -> Sequence[str]:
            values = {
                '*:443': f'127.0.0.1:{port}',
                '/etc/placement/tls': str(self.certificate.parent),
                '/var/log/apache2': str(folder),
                '127.0.0.1:8778': f'127.0.0.1:{machines.free_port() if wsgi else self._port}',
                **(self._wsgi_values(folder) if wsgi else {}),
            }
            site = folder / 'placement.conf'
            site.write_text(files.read(f'apache2/placement-{kind}.conf', values, self.prefix))
            return commands.apache(port, folder, site, _APACHE_MODULES, wsgi)

        return self._start(folder.name, command)

    def nginx(self) -> machines.Worker:
        """Start nginx, which forwards requests to uWSGI."""
        program = commands.program('nginx')
        folder = self._folder('nginx')

        def command(port: int) -> Sequence[str]:
            values = {
                '    listen [::]:443 ssl;\n': '',
                '    listen [::]:443 ssl default_server;\n': '',
                'listen 443 ssl': f'listen 127.0.0.1:{port} ssl',
                '/etc/placement/tls': str(self.certificate.parent),
                '/run/placement': str(self.folder / 'uwsgi'),
            }
            site = folder / 'placement.conf'
            site.write_text(files.read('nginx/placement.conf', values, self.prefix))
            configuration = folder / 'nginx.conf'
            configuration.write_text(_NGINX.format(folder=folder, site=site))
            return [*commands.unprivileged(), program, '-c', str(configuration), '-e', 'stderr']

        return self._start('nginx', command)

    def haproxy(
        self, *servers: machines.Worker, hosts: Sequence[str] = ('127.0.0.1',) * 3
    ) -> machines.Worker:
        """Start HAProxy, which forwards requests to the HTTP ports of uWSGI.

        :param hosts: the address of each server
        """
        program = commands.program('haproxy')
        folder = self._folder('haproxy')
        (folder / 'run').mkdir()

        def command(port: int) -> Sequence[str]:
            values = {
                'bind :443 ssl': f'bind 127.0.0.1:{port} ssl',
                '/etc/placement/tls': str(self.certificate.parent),
                '/run/haproxy': str(folder),
                'log /dev/log local0': 'log stdout format raw local0',
                '    user haproxy\n    group haproxy\n': '',
                # The tests wait for the results of health checks.
                'inter 2s': 'inter 200ms',
                **dict(_backends(servers, hosts)),
            }
            configuration = folder / 'haproxy.cfg'
            configuration.write_text(files.read('haproxy/placement.cfg', values, self.prefix))
            return [*commands.unprivileged(), program, '-db', '-f', str(configuration)]

        return self._start('haproxy', command)

    def _start(
        self,
        name: str,
        command: Callable[[int], Sequence[str]],
        settings: Mapping[str, str] | None = None,
    ) -> machines.Worker:
        return machines.Worker(
            f'sqlite:///{self.folder}/placement.db',
            command,
            settings={
                'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
                'OS_METRICS__ENABLED': 'true',
                # HAProxy replaces these headers, and the other servers replace or remove them.
                'OS_OSLO_MIDDLEWARE__ENABLE_PROXY_HEADERS_PARSING': 'true',
                'PYTHONPATH': commands.SEARCH_PATH,
                **(settings or {}),
            },
            log=self.folder / f'{name}.log',
        )

    def _folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder

    def _wsgi_values(self, folder: Path) -> dict[str, str]:
        shutil.copy(files.ETC / 'apache2' / 'placement.wsgi', folder)
        return {
            '/opt/placement/share/placement/apache2': str(folder),
            'python-home=/opt/placement': f'python-home={sys.prefix}',
            'home=/var/lib/placement': f'home={folder}',
            '/run/apache2': str(folder),
            'user=placement group=placement': 'user={} group={}'.format(*user()),
            'processes=4': 'processes=1',
        }


def _backends(servers: Sequence[machines.Worker], hosts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the replacements for the lines of the three servers in the file of HAProxy."""
    replaced = []
    for number in (1, 2, 3):
        for options in ('', f' track placement/api{number} maxconn 1'):
            line = f'    server api{number} 192.0.2.1{number}:8778{options}\n'
            new = ''
            if number <= len(servers):
                address = f'{hosts[number - 1]}:{servers[number - 1].port}'
                new = f'    server api{number} {address}{options}\n'
            replaced.append((line, new))
    return replaced
