"""Check that Placement caches tokens in memcached, and that it does not depend on memcached."""

from pathlib import Path

from tools.identity.checks import Checks
from tools.identity.cloud import Cloud
from tools.identity.servers import Memcached, memcached, placement


def check_cache(checks: Checks, cloud: Cloud, folder: Path, identity: str, port: int) -> None:
    """Check the token cache with both connection pools of keystonemiddleware.

    :param folder: the directory for the configuration of Placement
    :param identity: the URL of Keystone
    :param port: the port of Placement
    """
    for pool in ('true', 'false'):
        for failure in (Memcached.kill, Memcached.suspend):
            title = f'memcache_use_advanced_pool = {pool}'
            with (
                memcached() as cache,
                placement(
                    folder, identity, port, cache.address, memcache_use_advanced_pool=pool
                ) as send,
            ):
                token = cloud.token('services', project_name='one')
                statuses = [send('GET', '/traits', token).status_code for _ in range(3)]
                checks.equal(f'{title}: requests with one token', [200, 200, 200], statuses)
                counters = cache.counters()
                checks.equal(f'{title}: tokens written', 1, counters['cmd_set'])
                checks.equal(f'{title}: tokens read', 2, counters['get_hits'])
                failure(cache)
                title = f'{title}, after {failure.__name__} of memcached'
                checks.equal(
                    f'{title}: a known token', 200, send('GET', '/traits', token).status_code
                )
                token = cloud.token('services', project_name='one')
                checks.equal(
                    f'{title}: a new token', 200, send('GET', '/traits', token).status_code
                )
                checks.equal(f'{title}: no token', 401, send('GET', '/traits').status_code)
