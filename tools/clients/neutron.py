"""neutron-lib: each function of its Placement client."""

import uuid

from keystoneauth1 import loading
from neutron_lib.exceptions import placement
from neutron_lib.placement import client as neutron_client
from oslo_config import cfg

from tools.clients.calls import Calls, MismatchError, require
from tools.clients.cloud import REGION, Cloud

_CLASS, _OTHER_CLASS = 'CUSTOM_BANDWIDTH', 'CUSTOM_PACKETS'
_TRAIT = 'CUSTOM_PHYSNET'


def use(cloud: Cloud) -> None:
    """Call each public function of the client."""
    client = Calls(neutron_client.PlacementAPIClient(_configuration(cloud)))
    provider = {'uuid': str(uuid.uuid4()), 'name': 'agent'}
    client.create_resource_provider(provider)
    client.ensure_resource_provider({**provider, 'name': 'renamed'})
    client.update_resource_provider(provider)
    found = client.list_resource_providers(name='agent')['resource_providers']
    require([one['uuid'] for one in found] == [provider['uuid']], f'unexpected providers: {found}')
    client.get_resource_provider(provider['uuid'])
    _use_classes_and_traits(client, provider['uuid'])
    _use_inventories(client, provider['uuid'])
    aggregate = str(uuid.uuid4())
    _associate_aggregate(client, cloud, provider['uuid'], aggregate)
    stored = client.list_aggregates(provider['uuid'])['aggregates']
    require(stored == [aggregate], f'unexpected aggregates: {stored}')
    _use_allocations(client, provider['uuid'])
    client.delete_resource_provider_inventories(provider['uuid'])
    client.delete_resource_provider(provider['uuid'])
    client.delete_resource_class(_CLASS)
    client.delete_trait(_TRAIT)
    client.require_all()


def _associate_aggregate(client: Calls, cloud: Cloud, provider: str, aggregate: str) -> None:
    """Set the aggregates of a provider.

    The function sends a list, which Placement accepts before 1.19. By default, the client sends
    1.37.
    """
    try:
        client.associate_aggregates(provider, [aggregate])
    except placement.PlacementClientError as error:
        require('is not of type' in str(error), f'unexpected error: {error}')
    else:
        raise MismatchError('the client sends aggregates in the form of 1.19')
    version = neutron_client.PLACEMENT_API_WITH_NESTED_RESOURCES
    old = neutron_client.PlacementAPIClient(_configuration(cloud), openstack_api_version=version)
    old.associate_aggregates(provider, [aggregate])


def _configuration(cloud: Cloud) -> cfg.ConfigOpts:
    """Return the configuration, as the server of Neutron reads it from its file."""
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt('region_name'), cfg.StrOpt('endpoint_type')], 'placement')
    loading.register_auth_conf_options(conf, 'placement')
    loading.register_session_conf_options(conf, 'placement')
    conf.register_opts(loading.get_auth_plugin_conf_options('password'), 'placement')
    options = {'auth_type': 'password', 'region_name': REGION, 'endpoint_type': 'public'}
    for name, value in (options | cloud.credentials).items():
        conf.set_override(name, value, 'placement')
    conf([], default_config_files=[])
    return conf


def _use_classes_and_traits(client: Calls, provider: str) -> None:
    client.create_resource_class(_CLASS)
    client.update_resource_class(_OTHER_CLASS)
    client.get_resource_class(_CLASS)
    names = [one['name'] for one in client.list_resource_classes()['resource_classes']]
    require({_CLASS, _OTHER_CLASS} <= set(names), f'unexpected classes: {names}')
    client.update_trait(_TRAIT)
    client.get_trait(_TRAIT)
    require(_TRAIT in client.list_traits()['traits'], 'the trait is missing')
    client.update_resource_provider_traits(provider, [_TRAIT])
    stored = client.list_resource_provider_traits(provider)['traits']
    require(stored == [_TRAIT], f'unexpected traits: {stored}')
    client.delete_resource_provider_traits(provider)


def _use_inventories(client: Calls, provider: str) -> None:
    inventories = {_CLASS: {'total': 10}, _OTHER_CLASS: {'total': 10}}
    client.update_resource_provider_inventories(provider, inventories)
    client.update_resource_provider_inventory(provider, {'total': 20}, _CLASS)
    stored = client.get_inventory(provider, _CLASS)
    require(stored['total'] == 20, f'unexpected inventory: {stored}')
    client.delete_resource_provider_inventory(provider, _OTHER_CLASS)
    client.delete_resource_class(_OTHER_CLASS)


def _use_allocations(client: Calls, provider: str) -> None:
    consumer = str(uuid.uuid4())
    claim = {
        'allocations': {provider: {'resources': {_CLASS: 5}}},
        'project_id': 'project',
        'user_id': 'user',
        'consumer_generation': None,
    }
    client.update_allocation(consumer, claim)
    client.update_qos_allocation(consumer, {provider: {_CLASS: 3}})
    stored = client.list_allocations(consumer)['allocations'][provider]['resources']
    require(stored == {_CLASS: 8}, f'unexpected allocations: {stored}')
    client.update_allocation(consumer, {**claim, 'allocations': {}, 'consumer_generation': 2})


USES = (use,)
