"""The commands of the web servers, with the settings of the deployment guide."""

from collections.abc import Iterable, Sequence
import os
from pathlib import Path
import shutil
import subprocess
import sys
import sysconfig
from typing import NoReturn
import unittest

import placement

# If this variable is set, a missing server is a failure.
REQUIRED = 'PLACEMENT_TEST_REQUIRE_SERVERS'

# The search path of the servers, without the standard library: each server has its own.
SEARCH_PATH = os.pathsep.join(
    (
        str(Path(placement.__file__).parents[1]),
        sysconfig.get_path('purelib'),
        sysconfig.get_path('platlib'),
    )
)

_MODULE = 'placement.wsgi.api'
_SCRIPTS = Path(sys.executable).parent
_APACHE_MODULES = Path('/usr/lib/apache2/modules')

# The configuration of Apache around one site.
_APACHE = """
ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/pid
DefaultRuntimeDir {folder}
ErrorLog {folder}/error.log
{directives}
Include {site}
"""
_SITE = """
WSGISocketPrefix {folder}/wsgi
WSGIChunkedRequest On
WSGIDaemonProcess placement processes=1 threads=4 home={folder} python-path={path}
WSGIScriptAlias / {folder}/placement.wsgi process-group=placement application-group=%{{GLOBAL}}
<Directory {folder}>
    Require all granted
</Directory>
"""


def waitress(port: int, module: str = _MODULE) -> Sequence[str]:
    """Return the command of waitress.

    :param module: the module with the application
    """
    return (
        *(sys.executable, '-m', 'waitress'),
        *(f'--listen=127.0.0.1:{port}', '--threads=4', f'{module}:application'),
    )


def program(name: str) -> str:
    """Return the path of a program; skip the test if it is not installed."""
    folders = (str(_SCRIPTS), os.environ['PATH'], '/usr/sbin')
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None:
        _skip(f'{name} is not installed')
    return path


def certificate(folder: Path) -> Path:
    """Create a self-signed certificate for 127.0.0.1 and its key, with the suffix `.key`.

    :return: the certificate, in a new directory
    """
    tls = folder / 'tls'
    tls.mkdir()
    file = tls / 'placement.crt'
    names = 'subjectAltName=IP:127.0.0.1,DNS:placement.example.org'
    subprocess.run(
        (
            *(program('openssl'), 'req', '-x509', '-nodes', '-days', '2'),
            *('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'),
            *('-subj', '/CN=placement.example.org', '-addext', names),
            *('-out', file, '-keyout', file.with_suffix('.key')),
        ),
        check=True,
        capture_output=True,
    )
    return file


def uwsgi(port: int, processes: int = 1, module: str = _MODULE) -> Sequence[str]:
    """Return the command of uWSGI; skip the test if it is not installed.

    :param module: the module with the application
    """
    options = {
        'http-socket': f'127.0.0.1:{port}',
        'virtualenv': sys.prefix,
        'module': f'{module}:application',
        'processes': str(processes),
        'threads': '4',
        'buffer-size': '65535',
        'post-buffering': '65536',
        'add-header': 'Connection: close',
        # A process that is still starting does not delay the stop by a minute.
        'worker-reload-mercy': '5',
    }
    flags = (
        *('master', 'enable-threads', 'thunder-lock', 'lazy-apps'),
        *('disable-logging', 'die-on-term', 'need-app'),
    )
    return [
        program('uwsgi'),
        *(f'--{flag}' for flag in flags),
        *(word for name, value in options.items() for word in (f'--{name}', value)),
    ]


def apache(
    port: int, folder: Path, site: Path, modules: Iterable[str], directives: Iterable[str] = ()
) -> Sequence[str]:
    """Return the command of Apache with one site; skip the test if it is not installed.

    :param folder: an empty directory for its configuration, its log, and its sockets
    :param modules: the names of the modules
    :param directives: other directives before those of the site
    """
    if not _APACHE_MODULES.is_dir():
        _skip('Apache is not installed')
    loaded = [f'LoadModule {name}_module {_APACHE_MODULES}/mod_{name}.so' for name in modules]
    before = '\n'.join([*loaded, *directives])
    configuration = folder / 'apache2.conf'
    configuration.write_text(_APACHE.format(folder=folder, port=port, directives=before, site=site))
    return [*unprivileged(), program('apache2'), '-D', 'FOREGROUND', '-f', str(configuration)]


def mod_wsgi(port: int, folder: Path) -> Sequence[str]:
    """Return the command of Apache with mod_wsgi; skip the test if one of them is not installed.

    :param folder: an empty directory for its configuration, log and sockets
    """
    (folder / 'placement.wsgi').write_text(f'from {_MODULE} import application\n')
    site = folder / 'site.conf'
    site.write_text(_SITE.format(folder=folder, path=SEARCH_PATH))
    return apache(port, folder, site, ('mpm_event', 'authz_core'), [wsgi_module()])


def prometheus(
    port: int, targets: Sequence[int], folder: Path, rules: Sequence[Path] = ()
) -> Sequence[str]:
    """Return the command of Prometheus; skip the test if it is not installed.

    :param targets: the ports from which Prometheus reads `/metrics` every second
    :param folder: an empty directory for its configuration and its data
    :param rules: files with rules, which Prometheus evaluates every second
    """
    configuration = folder / 'prometheus.yml'
    configuration.write_text(
        'global: {scrape_interval: 1s, evaluation_interval: 1s}\n'
        f'rule_files: {[str(path) for path in rules]}\n'
        'scrape_configs:\n'
        '- job_name: placement\n'
        f'  static_configs: [{{targets: {[f"127.0.0.1:{target}" for target in targets]}}}]\n'
    )
    return [
        program('prometheus'),
        f'--config.file={configuration}',
        f'--storage.tsdb.path={folder / "data"}',
        f'--web.listen-address=127.0.0.1:{port}',
    ]


def wsgi_module() -> str:
    """Return the directives that load mod_wsgi for this version of Python."""
    express = _SCRIPTS / 'mod_wsgi-express'
    if express.exists():
        return subprocess.check_output([express, 'module-config'], text=True)
    # The Debian package supports only Debian's Python, whose version is in the file name.
    version = f'{sys.version_info.major}.{sys.version_info.minor}'
    module = _APACHE_MODULES / f'mod_wsgi.so-{version}'
    if not module.exists():
        _skip(f'mod_wsgi is not installed for Python {version}')
    return f'LoadModule wsgi_module {module}\nWSGIPythonHome /usr'


def unprivileged() -> Sequence[str]:
    """Return a prefix that runs a command as the user nobody, with read access to all files.

    mod_wsgi does not run as root, and the Python of root can be in a directory that only root can
    read. The capability allows writes, too, so the cache of entry points has no directory: it would
    be created below the home directory of the user, which is /nonexistent.
    """
    if os.getuid() != 0:
        return ()
    capability = '+dac_override'
    return (
        'setpriv',
        *('--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups'),
        *('--inh-caps', capability, '--ambient-caps', capability),
        *('env', 'XDG_CACHE_HOME=/dev/null'),
    )


def _skip(reason: str) -> NoReturn:
    """Skip the test, or fail if `REQUIRED` is set."""
    if os.environ.get(REQUIRED):
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)
