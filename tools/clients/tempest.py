"""tempest: each function of its Placement clients."""

from tempest.lib import auth
from tempest.lib.common import api_microversion_fixture
from tempest.lib.services.placement import placement_client, resource_providers_client

from tools.clients.calls import Calls, MismatchError, require
from tools.clients.cloud import REGION, VERSION, Cloud, Host

_TRAIT = 'CUSTOM_TESTED'


def use(cloud: Cloud) -> None:
    """Call each public function of the clients."""
    host = cloud.create_host()
    credentials = auth.KeystoneV3Credentials(
        **{name: value for name, value in cloud.credentials.items() if name != 'auth_url'}
    )
    provider = auth.KeystoneV3AuthProvider(credentials, cloud.credentials['auth_url'])
    arguments = (provider, 'placement', REGION)
    placement = Calls(placement_client.PlacementClient(*arguments))
    providers = Calls(resource_providers_client.ResourceProvidersClient(*arguments))
    # By default, the clients send no microversion.
    listed = providers.list_resource_providers()['resource_providers']
    require('root_provider_uuid' not in listed[0], f'not the first microversion: {listed}')
    with api_microversion_fixture.APIMicroversionFixture(placement_microversion=VERSION):
        _use_allocations(placement, host)
        _use_providers(providers, host)
        # Release 38.0.0 has no functions of traits.
        if placement.has('list_traits'):
            _use_traits(placement)
            _use_provider_traits(providers, host)
        cloud.send('DELETE', f'/allocations/{host.consumer}')
        providers.delete_resource_providers_inventories(host.provider)
    placement.require_all()
    providers.require_all()


def _use_allocations(client: Calls, host: Host) -> None:
    found = client.list_allocation_candidates(resources='VCPU:1', limit=1)
    require(list(found['provider_summaries']) == [host.provider], f'unexpected: {found}')
    stored = client.list_allocations(host.consumer)['allocations'][host.provider]['resources']
    require(stored == {'VCPU': 1}, f'unexpected allocations: {stored}')


def _use_providers(client: Calls, host: Host) -> None:
    listed = client.list_resource_providers(name=host.name)['resource_providers']
    require([one['uuid'] for one in listed] == [host.provider], f'unexpected: {listed}')
    generation = client.show_resource_provider(host.provider)['generation']
    aggregates = client.list_resource_provider_aggregates(host.provider)['aggregates']
    require(aggregates == [host.aggregate], f'unexpected aggregates: {aggregates}')
    usages = client.list_resource_provider_usages(host.provider)['usages']
    require(usages == {'VCPU': 1}, f'unexpected usages: {usages}')
    stored = client.list_resource_provider_inventories(host.provider)['inventories']
    client.update_resource_providers_inventories(
        host.provider,
        resource_provider_generation=generation,
        inventories={**stored, 'DISK_GB': {'total': 9}},
    )
    inventories = client.list_resource_provider_inventories(host.provider)['inventories']
    require(inventories['DISK_GB']['total'] == 9, f'unexpected inventories: {inventories}')


def _use_traits(client: Calls) -> None:
    require(client.create_trait(_TRAIT) == 201, 'the trait is not created')
    require(client.show_trait(_TRAIT) == 204, 'the trait is missing')
    # With a parameter, the client lists traits.
    shown = client.show_trait(_TRAIT, associated='false')['traits']
    require(_TRAIT in shown, 'the trait is not in the list')
    listed = client.list_traits(name='startswith:CUSTOM')['traits']
    require(listed == [_TRAIT], f'unexpected traits: {listed}')
    client.delete_trait(_TRAIT)


def _use_provider_traits(client: Calls, host: Host) -> None:
    stored = client.list_resource_provider_traits(host.provider)
    require(stored['traits'] == [host.trait], f'unexpected traits: {stored}')
    client.update_resource_provider_traits(
        host.provider,
        resource_provider_generation=stored['resource_provider_generation'],
        traits=[],
    )
    try:
        client.delete_resource_provider_traits(host.provider)
    except ValueError:  # the client reads JSON from the response, which has no body
        return
    raise MismatchError('the client accepts the response without a body')


USES = (use,)
