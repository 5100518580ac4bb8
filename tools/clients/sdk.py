"""openstacksdk: each function of its Placement proxy, and its functional tests."""

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
from typing import Any
import uuid

import openstack

from tools.clients.calls import Calls, MismatchError, require
from tools.clients.cloud import PROJECT, REGION, VERSION, Cloud

_CLASS, _TRAIT = 'CUSTOM_DEVICE', 'CUSTOM_FAST'
# The names of the clouds in the functional tests.
_CLOUDS = ('devstack', 'devstack-alt', 'devstack-admin', 'devstack-system-admin')


def use(cloud: Cloud) -> None:
    """Call each public function of the proxy."""
    connection = openstack.connect(
        region_name=REGION, placement_default_microversion=VERSION, **cloud.credentials
    )
    proxy = Calls(connection.placement)
    parent = proxy.create_resource_provider(name='parent')
    provider = proxy.create_resource_provider(name='child', parent_provider_id=parent.id)
    proxy.update_resource_provider(provider, name='renamed')
    require(proxy.get_resource_provider(provider.id).name == 'renamed', 'the name is unchanged')
    require(proxy.find_resource_provider('renamed').id == provider.id, 'another provider')
    require(len(list(proxy.resource_providers(in_tree=parent.id))) == 2, 'not two providers')
    _use_classes_and_traits(proxy)
    _use_inventories(proxy, provider)
    aggregate = str(uuid.uuid4())
    provider = proxy.set_resource_provider_aggregates(
        proxy.get_resource_provider(provider.id), aggregate
    )
    require(
        proxy.get_resource_provider_aggregates(provider).aggregates == [aggregate], 'aggregates'
    )
    # Releases 3.0.0 and 4.4.0 have none of these functions.
    if proxy.has('update_allocation'):
        _use_provider_traits(proxy, provider)
        proxy.fetch_resource_provider_aggregates(provider)
        _use_allocations(proxy, provider)
        proxy.delete_resource_provider_inventories(provider)
    proxy.delete_resource_provider(provider)
    proxy.delete_resource_provider(parent)
    proxy.delete_resource_class(_CLASS)
    proxy.delete_trait(_TRAIT)
    # They wait for attributes that no object of Placement has.
    proxy.require_all(excluded=('wait_for_status', 'wait_for_delete'))


def check_authentication(cloud: Cloud) -> None:
    """Check which plugins for authentication work without an identity service."""
    for plugin, options in (('none', {}), ('admin_token', {'token': 'admin'})):
        url = f'{cloud.url}/placement/'
        connection = openstack.connect(
            auth_type=plugin, auth={'endpoint': url}, placement_endpoint_override=url, **options
        )
        try:
            list(connection.placement.resource_classes())
            forbidden = False
        except openstack.exceptions.ForbiddenException:
            forbidden = True
        require(forbidden == (plugin == 'none'), f'{plugin}: forbidden is {forbidden}')


def _use_classes_and_traits(proxy: Calls) -> None:
    proxy.create_resource_class(name=_CLASS)
    proxy.update_resource_class(_CLASS)
    require(proxy.get_resource_class(_CLASS).name == _CLASS, 'another class')
    require(_CLASS in {one.name for one in proxy.resource_classes()}, 'the class is missing')
    proxy.create_trait(_TRAIT)
    require(proxy.get_trait(_TRAIT).id == _TRAIT, 'another trait')
    require(_TRAIT in {one.name for one in proxy.traits(name=f'in:{_TRAIT}')}, 'no trait')


def _use_provider_traits(proxy: Calls, provider: Any) -> None:
    traits = proxy.get_resource_provider_trait(provider)
    proxy.set_resource_provider_trait(traits, traits=[_TRAIT])
    proxy.delete_resource_provider_trait(provider)


def _use_inventories(proxy: Calls, provider: Any) -> None:
    proxy.create_resource_provider_inventory(provider, _CLASS, total=10)
    inventory = proxy.get_resource_provider_inventory(_CLASS, provider)
    proxy.update_resource_provider_inventory(
        inventory,
        provider,
        total=20,
        resource_provider_generation=proxy.get_resource_provider(provider.id).generation,
    )
    found = list(proxy.resource_provider_inventories(provider))
    require([one.total for one in found] == [20], f'unexpected inventories: {found}')
    proxy.delete_resource_provider_inventory(_CLASS, provider)


def _use_allocations(proxy: Calls, provider: Any) -> None:
    generation = proxy.get_resource_provider(provider.id).generation
    proxy.set_resource_provider_inventories(provider, {_CLASS: {'total': 30}}, generation)
    consumer = str(uuid.uuid4())
    found = proxy.allocation_candidates(resources=f'{_CLASS}:1', limit=1)
    require(len(list(found)) == 1, 'no candidate')
    claim = {
        'allocations': {provider.id: {'resources': {_CLASS: 1}}},
        'project_id': PROJECT,
        'user_id': 'admin',
        'consumer_generation': None,
        'consumer_type': 'INSTANCE',
    }
    proxy.update_allocation(consumer, **claim)
    proxy.create_allocations({str(uuid.uuid4()): claim})
    require(proxy.get_allocation(consumer).project_id == PROJECT, 'another project')
    listed = list(proxy.resource_provider_allocations(provider))
    require(len(listed) == 2, f'unexpected allocations: {listed}')
    proxy.fetch_resource_provider_usages(provider)
    list(proxy.usages(PROJECT))
    for one in listed:
        proxy.delete_allocation(one.id)


def run_functional_tests(cloud: Cloud) -> None:
    """Run the functional tests of Placement, which the wheel of openstacksdk contains.

    :raises MismatchError: a test fails
    """
    # The tests of `usages` expect an allocation of the project, see `user/clients.rst`.
    cloud.create_host()
    with tempfile.TemporaryDirectory(prefix='placement-clients-') as folder:
        config = Path(folder, 'clouds.yaml')
        entry = {'auth': cloud.credentials, 'region_name': REGION}
        config.write_text(json.dumps({'clouds': dict.fromkeys(_CLOUDS, entry)}))
        root = Path(openstack.__file__).parent
        command: list[str | Path] = [
            sys.executable,
            '-m',
            'unittest',
            'discover',
            '--top-level-directory',
            root.parent,
        ]
        command += ['--start-directory', root / 'tests' / 'functional' / 'placement' / 'v1']
        environment = {**os.environ, 'OS_CLIENT_CONFIG_FILE': str(config)}
        result = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True
        )
    print(f'openstacksdk functional tests: {result.stderr.splitlines()[-1]}')
    if result.returncode:
        raise MismatchError(result.stderr[-6000:])


USES = (use, check_authentication, run_functional_tests)
