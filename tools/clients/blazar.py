"""blazar: each function of its Placement client."""

import logging
from typing import Any
from urllib.parse import urlsplit
import uuid

from blazar import config
from blazar.utils.openstack import exceptions, keystone, placement

from tools.clients.calls import Calls, MismatchError, require
from tools.clients.cloud import REGION, VERSION, Cloud, Host


def use(cloud: Cloud) -> None:
    """Call each public function of the client."""
    host = cloud.create_host()
    _configure(cloud)
    client = Calls(placement.BlazarPlacementClient())
    _use_providers(client, host)
    _use_reservations(client, host)
    _use_classes(client, host)
    client.require_all()


def _configure(cloud: Cloud) -> None:
    """Set the options that the client reads from the global configuration."""
    conf = config.CONF
    conf([], project='blazar', default_config_files=[])
    logging.getLogger('blazar').setLevel(logging.CRITICAL)  # it logs the errors that it returns
    address, credentials = urlsplit(cloud.url), cloud.credentials
    options = {
        'os_auth_host': address.hostname,
        'os_auth_port': str(address.port),
        'os_auth_prefix': 'identity',
        'os_admin_username': credentials['username'],
        'os_admin_password': credentials['password'],
        'os_admin_project_name': credentials['project_name'],
    }
    for name, value in options.items():
        conf.set_override(name, value)
    keystone.CONF.set_override('os_region_name', REGION)


def _use_providers(client: Calls, host: Host) -> None:
    require(client.get_resource_provider('absent') is None, 'a provider that does not exist')
    child = client.create_resource_provider('child', str(uuid.uuid4()), host.provider)
    try:
        client.create_resource_provider('child')
    except exceptions.ResourceProviderCreationConflict:
        client.delete_resource_provider(child['uuid'])
    else:
        raise MismatchError('two providers have the same name')
    # Release 13.0.0 does not have these two functions, and 15.0.0 has only the first one.
    if client.has('get_traits'):
        require(client.get_traits(host.provider) == [host.trait], 'unexpected traits')
    if client.has('list_resource_providers'):
        query = f'required={host.trait}'
        listed = client.list_resource_providers(query=query, microversion='1.22')
        require([one['uuid'] for one in listed] == [host.provider], f'unexpected: {listed}')
        require(client.list_resource_providers() == listed, 'unexpected providers')


def _use_reservations(client: Calls, host: Host) -> None:
    """Reserve instances on a host, as the plugin for instances does."""
    reservation = str(uuid.uuid4())
    resource_class = f'CUSTOM_RESERVATION_{reservation.upper().replace("-", "_")}'
    client.create_reservation_provider(host.name)
    client.create_reservation_class(reservation)
    client.update_reservation_inventory(host.name, reservation, 2)
    client.update_reservation_inventory(host.name, reservation, 3, additional=True)
    provider = client.get_resource_provider(f'blazar_{host.name}')['uuid']
    stored = client.get_inventory(provider)
    require(stored['inventories'][resource_class]['total'] == 5, f'unexpected: {stored}')
    client.delete_reservation_inventory(host.name, reservation)
    _require_conflict(client, provider, stored)
    client.delete_reservation_class(reservation)
    client.delete_reservation_class(reservation)  # the client ignores the error
    client.delete_reservation_provider(host.name)


def _require_conflict(client: Calls, provider: str, stale: dict[str, Any]) -> None:
    """Require the response to a stale generation after which the client repeats an update."""
    response = client.put(f'/resource_providers/{provider}/inventories', stale)
    code = response.json()['errors'][0]['code']
    require(response.status_code == 409, f'unexpected status: {response.status_code}')
    require(code == 'placement.concurrent_update', f'unexpected code: {code}')


def _use_classes(client: Calls, host: Host) -> None:
    client.create_resource_class('CUSTOM_LICENSE')
    client.update_inventory(host.provider, 'CUSTOM_LICENSE', 4, additional=False)
    client.delete_inventory(host.provider, 'CUSTOM_LICENSE')
    client.delete_resource_class('CUSTOM_LICENSE')
    class_path = '/resource_classes/CUSTOM_LICENSE'
    require(client.put(class_path, None).status_code == 201, 'the class is not created')
    require(client.get(class_path, VERSION).status_code == 200, 'the class is missing')
    require(client.delete(class_path).status_code == 204, 'the class is not deleted')
    response = client.post('/resource_classes', {'name': 'CUSTOM_LICENSE'})
    require(response.status_code == 201, 'the class is not created')


USES = (use,)
