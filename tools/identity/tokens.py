"""Check which requests Placement permits for tokens of different roles and scopes."""

from collections.abc import Callable

import requests

from tools.identity.checks import Checks
from tools.identity.cloud import Cloud
from tools.identity.servers import Send


def check_tokens(checks: Checks, cloud: Cloud, send: Send) -> None:
    """Check which requests are allowed for each combination of role and scope."""
    one, two = cloud.projects['one'], cloud.projects['two']
    operations: dict[str, Callable[[str], int]] = {
        'GET /resource_providers': lambda t: send('GET', '/resource_providers', t).status_code,
        'GET /usages of the project': (
            lambda t: send('GET', f'/usages?project_id={one}', t).status_code
        ),
        'GET /usages of another project': (
            lambda t: send('GET', f'/usages?project_id={two}', t).status_code
        ),
        # The body is invalid, so 400 means that the policy allows the request.
        'POST /reshaper': lambda t: send('POST', '/reshaper', t, json=[]).status_code,
    }
    allowed, forbidden = [200, 200, 200, 400], [403, 403, 403, 403]
    project = {'project_name': 'one'}
    for user, token, statuses in (
        ('a service', cloud.token('services', **project), allowed),
        ('an admin', cloud.token('another-admin', **project), [200, 200, 200, 403]),
        ('a reader', cloud.token('reader', **project), [403, 200, 403, 403]),
        ('another role', cloud.token('member', **project), forbidden),
        ('an admin of the system', cloud.token('admin', system_scope='all'), forbidden),
        ('an admin of a domain', cloud.token('admin', domain_id='default'), forbidden),
    ):
        for (title, operation), status in zip(operations.items(), statuses, strict=True):
            checks.equal(f'{user}, {title}', status, operation(token))

    token = cloud.token('member', **project)
    forged = {'X-Roles': 'admin,service', 'X-Identity-Status': 'Confirmed', 'X-Project-Id': two}
    response = send('GET', '/resource_providers', token, headers=forged)
    checks.equal('forged roles with a valid token', 403, response.status_code)
    checks.equal(
        'the error message has the name of the rule',
        True,
        'placement:resource_providers:list' in response.json()['errors'][0]['detail'],
    )

    token = cloud.token('services', **project)
    checks.equal('a valid token', 200, send('GET', '/traits', token).status_code)
    cloud.revoke(token)
    checks.equal('the revoked token', 401, send('GET', '/traits', token).status_code)


def check_unauthorized(checks: Checks, uri: str, send: Send) -> None:
    """Check the responses of keystonemiddleware to requests without a valid token."""
    checks.equal('GET / without token', 200, send('GET', '/').status_code)
    checks.equal('GET / with an invalid token', 200, send('GET', '/', 'bad').status_code)
    for title, headers in (
        ('no token', {}),
        ('an invalid token', {'X-Auth-Token': 'bad'}),
        ('forged headers', {'X-Roles': 'admin', 'X-Identity-Status': 'Confirmed'}),
    ):
        response = send('GET', '/resource_providers', headers=headers)
        checks.equal(title, 401, response.status_code)
        check_challenge(checks, title, uri, response)
        error = response.json().get('error', {})
        checks.equal(
            f'{title}: body', (401, 'Unauthorized'), (error.get('code'), error.get('title'))
        )


def check_delayed(checks: Checks, uri: str, cloud: Cloud, send: Send) -> None:
    """Check the 401 responses of Placement if keystonemiddleware delays the decision."""
    token = cloud.token('services', project_name='one')
    checks.equal(
        'delayed: a valid token', 200, send('GET', '/resource_providers', token).status_code
    )
    for title, headers in (
        ('no token', {}),
        ('an invalid token', {'X-Auth-Token': 'bad'}),
        (
            'forged headers',
            {'X-Roles': 'admin', 'X-User-Id': 'x', 'X-Identity-Status': 'Confirmed'},
        ),
    ):
        response = send('GET', '/resource_providers', headers=headers)
        checks.equal(f'delayed: {title}', 401, response.status_code)
        check_challenge(checks, f'delayed: {title}', uri, response)
        document = response.json()
        checks.equal(
            f'delayed: {title}: body',
            (['code', 'message', 'title'], '401 Unauthorized'),
            (sorted(document), document.get('code')),
        )


def check_challenge(checks: Checks, title: str, uri: str, response: requests.Response) -> None:
    """Check the WWW-Authenticate header and the other headers of a 401 response."""
    checks.equal(
        f'{title}: challenge', f'Keystone uri="{uri}"', response.headers.get('www-authenticate')
    )
    checks.equal(
        f'{title}: request id, no version',
        (True, False),
        ('x-openstack-request-id' in response.headers, 'openstack-api-version' in response.headers),
    )
