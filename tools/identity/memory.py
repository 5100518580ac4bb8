"""Check that each process of Placement remembers validated tokens, and for how long."""

from pathlib import Path
import time

from tools.identity.checks import Checks
from tools.identity.cloud import Cloud
from tools.identity.servers import PREFIX, placement

# In seconds.
SHORT = 2


def check_memory(checks: Checks, cloud: Cloud, folder: Path, identity: str, port: int) -> None:
    """Check the memory of tokens with a long and with a short time.

    :param folder: the directory for the configuration of Placement
    :param identity: the URL of Keystone
    :param port: the port of Placement
    """
    cloud.create_user('demoted', 'one', 'reader')
    cloud.add_role('demoted', 'one', 'admin')
    one = {'project_name': 'one'}
    with placement(folder, identity, port, service_type='placement') as send:

        def status(token: str, path: str = '/resource_providers', **headers: str) -> int:
            return send('GET', path, token, headers=headers).status_code

        token, other = cloud.token('services', **one), cloud.token('services', **one)
        checks.equal('a new token', 200, status(token))
        cloud.revoke(token)
        cloud.revoke(other)
        checks.equal('a known token that is revoked', 200, status(token))
        checks.equal('a new token that is revoked', 401, status(other))
        reader = cloud.token('reader', **one)
        forged = {'X-Roles': 'admin,service', 'X-Identity-Status': 'Confirmed'}
        for title in ('a new token', 'a known token'):
            checks.equal(f'{title}, forged roles', 403, status(reader, **forged))
        valid, bad = cloud.token('services', **one), {'X-Service-Token': 'bad'}
        checks.equal('a valid token', 200, status(valid))
        checks.equal('a known token, an invalid service token', 401, status(valid, **bad))
        service = {'X-Service-Token': cloud.token('services', **one)}
        for title in ('new', 'known'):
            checks.equal(f'{title} user and service tokens', 200, status(valid, **service))
        rule = {'service': 'placement', 'method': 'GET', 'path': f'{PREFIX}/traits'}
        restricted = cloud.restricted_token('services', 'one', **rule)
        for title in ('first', 'second'):
            title = f'access rules, {title} request'
            checks.equal(f'{title}: permitted', 200, status(restricted, '/traits'))
            checks.equal(f'{title}: not permitted', 401, status(restricted))
    with placement(folder, identity, port, token_cache_time=str(SHORT)) as send:
        revoked, demoted = cloud.token('services', **one), cloud.token('demoted', **one)
        checks.equal('a valid token', 200, status(revoked))
        checks.equal('a token with the role admin', 200, status(demoted))
        cloud.revoke(revoked)
        cloud.remove_role('demoted', 'one', 'admin')
        time.sleep(SHORT)
        checks.equal('the revoked token after token_cache_time', 401, status(revoked))
        checks.equal('the token of a demoted user', 403, status(demoted))
