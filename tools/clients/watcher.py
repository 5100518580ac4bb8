"""watcher: each function of its Placement helper."""

import logging
import uuid

from keystoneauth1 import loading
from watcher.common import placement_helper
from watcher.conf import CONF

from tools.clients.calls import Calls, require
from tools.clients.cloud import Cloud, Host

_AUTHENTICATION = 'watcher_clients_auth'


def use(cloud: Cloud) -> None:
    """Call each public function of the helper."""
    host = cloud.create_host()
    _configure_authentication(cloud)
    helper = Calls(placement_helper.PlacementHelper())
    inventory = helper.get_inventories(host.provider)['VCPU']
    # Releases before 17.0.0 return the JSON of the response.
    total = inventory['total'] if isinstance(inventory, dict) else inventory.total
    require(total == 8, f'unexpected inventory: {inventory}')
    require(helper.get_inventories(str(uuid.uuid4())) is None, 'a provider that does not exist')
    # Release 17.0.0 has none of these functions.
    if helper.has('get_resource_providers'):
        _use_old_functions(helper, host)
    helper.require_all()


def _configure_authentication(cloud: Cloud) -> None:
    """Set the options that the helper reads from the global configuration."""
    CONF([], project='watcher', default_config_files=[])
    logging.getLogger('watcher').setLevel(logging.CRITICAL)  # it logs the errors that it returns
    CONF.register_opts(loading.get_auth_plugin_conf_options('password'), _AUTHENTICATION)
    for name, value in {'auth_type': 'password', **cloud.credentials}.items():
        CONF.set_override(name, value, _AUTHENTICATION)


def _use_old_functions(helper: Calls, host: Host) -> None:
    for listed in (helper.get_resource_providers(), helper.get_resource_providers(host.name)):
        require([one['uuid'] for one in listed] == [host.provider], f'unexpected: {listed}')
    require(helper.get_provider_traits(host.provider) == [host.trait], 'unexpected traits')
    stored = helper.get_allocations_for_consumer(host.consumer)[host.provider]['resources']
    require(stored == {'VCPU': 1}, f'unexpected allocations: {stored}')
    usages = helper.get_usages_for_resource_provider(host.provider)
    require(usages == {'VCPU': 1}, f'unexpected usages: {usages}')
    found = helper.get_candidate_providers('resources=VCPU:1')
    require(list(found) == [host.provider], f'unexpected providers: {found}')
    response = helper.get(f'/resource_providers/{uuid.uuid4()}')
    require('No resource provider' in helper.get_error_msg(response), response.text)


USES = (use,)
