"""A small cloud in the states that the guide corrects, and stand-ins for the programs of Nova.

Executed as a module, it is one of the programs::

    python -m placement.tests.functional.cmd.runbook_cloud prepare host-died
    python -m placement.tests.functional.cmd.runbook_cloud nova-manage placement heal_allocations

`prepare` registers the cloud, and sends the requests that lead to a state. A file contains what
Nova has stored: its hosts and servers. The other programs have the effects on Placement that those
of Nova have, and fail for a command that they do not support. `openstack resource provider` is the
real command if osc-placement is installed.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
from dataclasses import asdict, dataclass
import functools
import importlib.util
import json
import os
from pathlib import Path
import shutil
import sqlite3
import sys
import threading
import traceback
from typing import Any
from wsgiref import simple_server

import sqlalchemy as sa
import webob

from placement.db.sqlalchemy import models

PROGRAMS = ('openstack', 'nova-manage', 'systemctl', 'journalctl')
# The environment variables with the paths of the file of Nova, and of the log of Placement.
NOVA, LOG = 'PLACEMENT_TEST_NOVA', 'OS_DEFAULT__LOG_FILE'

_INVENTORIES = {'VCPU': 16, 'MEMORY_MB': 65536}
_FLAVOR = {'VCPU': 8, 'MEMORY_MB': 16384}
_OWNER = {
    'project_id': '0c2d3b3f5f8b4d0c9e6f7a8b9c0d1e2f',
    'user_id': '5d4c3b2a19084f7e8d6c5b4a39281706',
}
_JSON = 'application/json'
_DISABLED = 'COMPUTE_STATUS_DISABLED'
# The UUIDs of the hosts, the servers, and a migration, which the page contains.
HOSTS = {
    'compute-01': '7b5f7f4e-3f0a-4d2e-9d52-0d7c1b0c1f6a',
    'compute-02': '4e8e5957-649f-477b-9e5b-f1f75b21c03c',
    'compute-03': 'e1b1d2c0-2a4e-4b5a-8f43-6a1b7c0d9e52',
}
SERVERS = {
    'web-1': 'c3a1de44-18fd-4c6d-8a71-6a8e1f3c9a01',
    'web-2': '2f6b0c9d-7e15-4a83-b0c4-91d5e8a7f302',
    'web-3': '90d4a7e1-5c38-4f26-a9be-37c1f0b26d03',
    'db-1': 'b8e27c53-d604-49af-8213-4e9a6f1d7c04',
}
_RENAMED, _NEW_UUID = 'compute-02.example.org', '9d2b1a7c-5f0e-4c39-8f53-0a7e6d1b2c48'
_NEW_HOST, _NEW_HOST_UUID = 'compute-04', 'd05c3e96-8b17-4e7d-9a60-f2c48b1e7a35'
_MIGRATION = '61f0e9b8-4c2d-4b7a-95e3-d8a7c6b5e405'

_READ_ONLY = (
    'compute service list',
    'hypervisor list',
    'server evacuate',
    'server list --all-projects --host',
    'server migration list',
    'server set',
    'server show',
)


@dataclass(frozen=True, slots=True)
class Nova:
    """What Nova has stored.

    :ivar hosts: the name of a host -> the UUID of its provider
    :ivar servers: the name of a server -> the name of its host
    """

    hosts: dict[str, str]
    servers: dict[str, str]

    def expected(self) -> 'Contents':
        """Return what Placement has to contain."""
        hosts = {(name, uuid, None) for name, uuid in self.hosts.items()}
        allocations = {
            (SERVERS[server], self.hosts[host], class_, amount)
            for server, host in self.servers.items()
            for class_, amount in _FLAVOR.items()
        }
        return Contents(hosts, allocations)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a database of Placement contains.

    :ivar providers: the name and the UUID of each provider, and the trait of disabled hosts
    :ivar allocations: the UUIDs of the consumer and the provider, the class, and the amount
    """

    providers: set[tuple[Any, ...]]
    allocations: set[tuple[Any, ...]]


def stored(database: Path) -> Contents:
    """Return what an SQLite database contains."""
    engine = sa.create_engine(f'sqlite:///{database}', poolclass=sa.NullPool)
    providers, allocations = models.resource_providers, models.allocations
    links, classes = models.resource_provider_traits, models.resource_classes
    hosts = sa.select(providers.c.name, providers.c.uuid, models.traits.c.name).outerjoin(
        links.join(models.traits), links.c.resource_provider_id == providers.c.id
    )
    claims = (
        sa.select(
            *(allocations.c.consumer_id, providers.c.uuid, classes.c.name, allocations.c.used)
        )
        .join(providers, providers.c.id == allocations.c.resource_provider_id)
        .join(classes, classes.c.id == allocations.c.resource_class_id)
    )
    with engine.connect() as conn:
        return Contents(*({tuple(row) for row in conn.execute(query)} for query in (hosts, claims)))


def read_nova(path: Path) -> Nova:
    """Return the contents of the file of Nova."""
    return Nova(**json.loads(path.read_text()))


class StandInError(Exception):
    """A stand-in does not support a command, or Placement rejects a request."""


# Requests to Placement ------------------------------------------------------------


@functools.cache
def _application() -> Any:
    from placement import wsgi

    os.environ['OS_API__AUTH_STRATEGY'] = 'noauth2'
    return wsgi.init_application()


def _send(method: str, path: str, body: Any = None, status: int | None = None) -> Any:
    """Send a request as Nova does, and return the body of the response.

    :param status: the expected status; None for any success
    """
    headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement 1.36'}
    request = webob.Request.blank(path, method=method, headers=headers, content_type=_JSON)
    if body is not None:
        request.json_body = body
    response = request.get_response(_application())
    if response.status_int != status if status else response.status_int >= 400:
        raise StandInError(f'{method} {path}: {response.status} {response.text}')
    return response.json_body if response.body else None


def _provider(uuid: str) -> Any:
    return _send('GET', f'/resource_providers/{uuid}')


def _report(name: str, uuid: str) -> None:
    """Report the inventories of a host, as nova-compute does when it starts."""
    if not _send('GET', f'/resource_providers?uuid={uuid}')['resource_providers']:
        _send('POST', '/resource_providers', {'name': name, 'uuid': uuid})
    inventories = {
        class_: {'total': total, 'max_unit': total} for class_, total in _INVENTORIES.items()
    }
    body = {
        'inventories': inventories,
        'resource_provider_generation': _provider(uuid)['generation'],
    }
    _send('PUT', f'/resource_providers/{uuid}/inventories', body)


def _claim(consumer: str, *hosts: str) -> None:
    """Replace the allocations of a consumer by those of one flavor from each host."""
    current = _send('GET', f'/allocations/{consumer}')
    body = {
        'allocations': {host: {'resources': _FLAVOR} for host in hosts},
        'consumer_generation': current.get('consumer_generation'),
        **_OWNER,
    }
    _send('PUT', f'/allocations/{consumer}', body)


def _release(consumer: str, provider: str) -> None:
    """Remove the allocations of a consumer from one provider."""
    others = _send('GET', f'/allocations/{consumer}')['allocations'].keys() - {provider}
    _claim(consumer, *others)


# States ---------------------------------------------------------------------------


def _failed_evacuation(nova: Nova) -> None:
    """compute-01 failed, and nova-compute of compute-03 stopped during the evacuation."""
    _claim(SERVERS['web-1'], HOSTS['compute-01'], HOSTS['compute-03'])


def _stuck_migration(nova: Nova) -> None:
    """A live migration from compute-01 to compute-03 failed, and Nova has not reverted it."""
    web, source = SERVERS['web-1'], HOSTS['compute-01']
    current = _send('GET', f'/allocations/{web}')
    moved = {
        web: {**current, 'allocations': {}},
        _MIGRATION: {
            'allocations': {source: {'resources': _FLAVOR}},
            'consumer_generation': None,
            **_OWNER,
        },
    }
    _send('POST', '/allocations', moved)
    _claim(web, HOSTS['compute-03'])


def _another_uuid(nova: Nova) -> None:
    """compute-02 was installed again, and has another name and another UUID."""
    del nova.hosts['compute-02']
    nova.hosts[_RENAMED] = _NEW_UUID
    nova.servers['web-2'] = _RENAMED
    _report(_RENAMED, _NEW_UUID)


def _deleted_service(nova: Nova) -> None:
    """web-1 was evacuated from compute-03, and web-3 was deleted there without its allocations."""
    own = HOSTS['compute-03']
    _claim(SERVERS['web-1'], HOSTS['compute-01'], own)
    _claim(SERVERS['web-3'], own)
    del nova.hosts['compute-03']
    _send('DELETE', f'/resource_providers/{own}', status=409)


def _restored_backup(nova: Nova) -> None:
    """After the backup: web-3 and compute-04 are new, web-2 is deleted, and db-1 has moved."""
    from placement.db import engine

    url = sa.make_url(os.environ['OS_PLACEMENT_DATABASE__CONNECTION'])
    database, backup = Path(str(url.database)), f'{url.database}.backup'
    own = HOSTS['compute-01']
    inventories = _send('GET', f'/resource_providers/{own}/inventories')
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute('VACUUM INTO ?', (backup,))
    nova.hosts[_NEW_HOST] = _NEW_HOST_UUID
    _report(_NEW_HOST, _NEW_HOST_UUID)
    nova.servers.update({'web-3': _NEW_HOST, 'db-1': 'compute-03'})
    _claim(SERVERS['web-3'], _NEW_HOST_UUID)
    _claim(SERVERS['db-1'], HOSTS['compute-03'])
    del nova.servers['web-2']
    _send('DELETE', f'/allocations/{SERVERS["web-2"]}')
    # nova-compute has read a generation that the backup does not have.
    _report('compute-01', own)
    inventories['resource_provider_generation'] = _provider(own)['generation']
    engine.get_pools().pool.dispose()
    for suffix in ('-wal', '-shm'):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    shutil.copy(backup, database)
    inventories['inventories']['VCPU']['reserved'] = 1
    _send('PUT', f'/resource_providers/{own}/inventories', inventories, status=409)


def _sound(nova: Nova) -> None:
    """Placement contains what follows from Nova."""


# The names of the pages of the administration guide.
STATES: Mapping[str, Callable[[Nova], None]] = {
    'host-died': _failed_evacuation,
    'stuck-migration': _stuck_migration,
    'host-renamed': _another_uuid,
    'host-removed': _deleted_service,
    'database-restored': _restored_backup,
    'who-took-capacity': _sound,
}


def _prepare(page: str) -> Nova:
    """Register the cloud, and bring it into the state of a page."""
    nova = Nova(dict(HOSTS), {'web-1': 'compute-01', 'web-2': 'compute-02', 'db-1': 'compute-01'})
    for name, uuid in nova.hosts.items():
        _report(name, uuid)
    for server, host in nova.servers.items():
        _claim(SERVERS[server], HOSTS[host])
    STATES[page](nova)
    return nova


# Stand-ins ------------------------------------------------------------------------


def _openstack(nova: Nova, *words: str) -> None:
    while words[0].endswith('-api-version'):
        words = words[2:]
    command = ' '.join(words)
    if command == 'server list --all-projects --limit -1 -f json':
        rows = [{'ID': SERVERS[name], 'Name': name, 'Status': 'ACTIVE'} for name in nova.servers]
        print(json.dumps(rows))
    elif command.startswith('resource provider '):
        _resource_provider(*words[2:])
    elif command.startswith('compute service set '):
        _set_service(nova, *words[3:])
    elif not command.startswith(_READ_ONLY):
        raise StandInError('unknown command')


def _set_service(nova: Nova, option: str, *words: str) -> None:
    uuid = nova.hosts[words[-2]]
    path = f'/resource_providers/{uuid}/traits'
    body = _send('GET', path)
    traits = {*body['traits']} - {_DISABLED}
    body['traits'] = sorted(traits | {_DISABLED} if option == '--disable' else traits)
    _send('PUT', path, body)


def _resource_provider(*words: str) -> None:
    if importlib.util.find_spec('osc_placement'):
        _real_client('resource', 'provider', *words)
        return
    match words:
        case ('allocation', 'unset', '--provider', provider, consumer):
            _release(consumer, provider)
        case ('allocation', 'delete', consumer):
            _send('DELETE', f'/allocations/{consumer}')
        case ('delete', uuid):
            _send('DELETE', f'/resource_providers/{uuid}')
        case ('list' | 'show', *_) | ('allocation', 'show', _):
            pass
        case _:
            raise StandInError('unknown command')


def _real_client(*words: str) -> None:
    """Execute a command of osc-placement."""
    shell = importlib.import_module('openstackclient.shell')
    with _served() as url:
        options = ('--os-auth-type', 'admin_token', '--os-token', 'admin', '--os-endpoint', url)
        if shell.main([*options, *words]):
            raise StandInError('the client failed')


@contextlib.contextmanager
def _served() -> Iterator[str]:
    with simple_server.make_server('127.0.0.1', 0, _application()) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


def _nova_manage(nova: Nova, _: str, command: str, *options: str) -> None:
    match command:
        case 'audit':
            _audit(nova, options)
        case 'heal_allocations':
            _heal(nova, options)
        case 'sync_aggregates':
            pass
        case _:
            raise StandInError('unknown command')


def _audit(nova: Nova, options: tuple[str, ...]) -> None:
    """Delete the allocations of consumers that are no servers on the host, with `--delete`."""
    if '--delete' not in options:
        return
    providers = _send('GET', '/resource_providers')['resource_providers']
    for provider in (one['uuid'] for one in providers):
        if '--resource_provider' in options and provider not in options:
            continue
        on_host = {SERVERS[s] for s, host in nova.servers.items() if nova.hosts[host] == provider}
        found = _send('GET', f'/resource_providers/{provider}/allocations')['allocations']
        for consumer in found.keys() - on_host:
            _release(consumer, provider)


def _heal(nova: Nova, options: tuple[str, ...]) -> None:
    """Create the allocations of servers without any, or those of one server with `--force`."""
    for name, host in nova.servers.items():
        uuid = SERVERS[name]
        if '--dry-run' in options or ('--instance' in options and uuid not in options):
            continue
        if '--force' in options or not _send('GET', f'/allocations/{uuid}')['allocations']:
            _claim(uuid, nova.hosts[host])


def _systemctl(nova: Nova, action: str, service: str) -> None:
    if service == 'nova-compute' and action in ('start', 'restart'):
        for name, uuid in nova.hosts.items():
            _report(name, uuid)


def _journalctl(*_: str) -> None:
    print(Path(os.environ[LOG]).read_text(), end='')


def main() -> int:
    """Execute the program that the arguments name, and return its exit status."""
    program, *words = sys.argv[1:]
    path = Path(os.environ[NOVA])
    stand_ins: Mapping[str, Callable[..., None]] = {
        'openstack': _openstack,
        'nova-manage': _nova_manage,
        'systemctl': _systemctl,
        'journalctl': _journalctl,
    }
    try:
        if program == 'prepare':
            path.write_text(json.dumps(asdict(_prepare(*words))))
        else:
            stand_ins[program](read_nova(path), *words)
    except Exception:
        # oslo.log would write the traceback into the log.
        traceback.print_exc()
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
