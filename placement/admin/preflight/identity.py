"""Checks of Keystone: options, endpoints, the credentials of the service, and its catalog."""

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
import os
from typing import Any

from keystoneauth1 import exceptions as auth_exceptions
from keystoneauth1 import loading
from keystoneauth1 import session as auth_session
from oslo_config import cfg

from placement.admin.preflight import encryption, masking, options
from placement.admin.preflight.model import Verdict, failure, ok, skipped, warning
from placement.admin.preflight.options import AUTH_GROUP

# In seconds, for each request to Keystone.
TIMEOUT = 10
# In seconds, for each request to an endpoint of the catalog.
ENDPOINT_TIMEOUT = 5

# By default, Keystone permits users with one of these roles to validate the tokens of others.
_VALIDATING_ROLES = frozenset({'service', 'admin'})
_SERVICE_TYPE = 'placement'
# The options with files for connections to Keystone.
_FILES = ('cafile', 'certfile', 'keyfile')


@dataclass(frozen=True, slots=True)
class AuthOptions:
    """The options of `[keystone_authtoken]` that are judged together.

    :param plugin: the name of the auth plugin
    :param plugin_exists: whether the auth plugin is installed
    :param uri: the public endpoint of Keystone
    :param needs_secret: the tokens in memcached are signed or encrypted
    :param has_secret: there is a key for the tokens in memcached
    :param roles_required: a service token needs one of the roles of services
    :param insecure: the certificate of Keystone is not verified
    :param unreadable: the option and the path of each file that cannot be read
    """

    plugin: str | None
    plugin_exists: bool
    uri: str | None
    needs_secret: bool
    has_secret: bool
    roles_required: bool
    insecure: bool
    unreadable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of the service according to its token."""

    user: str
    project: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An endpoint of the service in the catalog."""

    interface: str
    url: str

    def __str__(self) -> str:
        return f'{self.interface} {self.url}'


def check_options(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the options that connect the service with Keystone are set."""
    if config.api.auth_strategy == 'noauth2':
        return [skipped('The service does not use Keystone (noauth2).')]
    return judge_options(read_options(config))


def read_options(config: cfg.ConfigOpts) -> AuthOptions:
    """Return the options that `judge_options` judges."""
    group = config[AUTH_GROUP]
    plugin = config[options.plugin_group(config)].auth_type
    return AuthOptions(
        plugin=plugin,
        plugin_exists=_exists(plugin),
        uri=group.www_authenticate_uri,
        needs_secret=group.memcache_security_strategy.lower() != 'none',
        has_secret=bool(group.memcache_secret_key),
        roles_required=group.service_token_roles_required,
        insecure=group.insecure,
        unreadable=tuple(
            (name, group[name])
            for name in _FILES
            if group[name] and not os.access(group[name], os.R_OK)
        ),
    )


def _exists(plugin: str | None) -> bool:
    try:
        loading.get_plugin_loader(plugin or '')
    except auth_exceptions.NoMatchingPlugin:
        return False
    return True


def judge_options(read: AuthOptions) -> list[Verdict]:
    """Judge the options that connect the service with Keystone."""
    verdicts = [_judge_plugin(read)] if not read.plugin_exists else []
    verdicts += [
        failure(
            f'The file {path} ([{AUTH_GROUP}] {name}) cannot be read.',
            'Correct its path or its permissions.',
        )
        for name, path in read.unreadable
    ]
    if not read.uri:
        verdicts.append(
            warning(
                'www_authenticate_uri is not set. A 401 response does not name the Keystone that '
                'clients can use.',
                f'Set [{AUTH_GROUP}] www_authenticate_uri to the public URL of Keystone.',
            )
        )
    if read.needs_secret and not read.has_secret:
        verdicts.append(
            failure(
                'memcache_security_strategy is set, and memcache_secret_key is not. The service '
                'does not start.',
                f'Set [{AUTH_GROUP}] memcache_secret_key to a random text.',
            )
        )
    if not read.roles_required:
        verdicts.append(
            warning(
                'service_token_roles_required is false, so that any token is valid as a service '
                'token.',
                f'Set [{AUTH_GROUP}] service_token_roles_required to true.',
            )
        )
    if read.insecure:
        verdicts.append(
            warning(
                'insecure is true, so that another host can replace Keystone and make any token '
                'valid.',
                f'Remove [{AUTH_GROUP}] insecure, and set cafile to the file with the CA of '
                'Keystone.',
            )
        )
    return verdicts or [ok(f'The auth plugin is {read.plugin}.')]


def _judge_plugin(read: AuthOptions) -> Verdict:
    if read.plugin:
        return failure(
            f'The auth plugin {read.plugin} is not installed.',
            f'Correct [{AUTH_GROUP}] auth_type, for example to password.',
        )
    return failure(
        'auth_type is not set, so that the service cannot validate tokens.',
        f'Set [{AUTH_GROUP}] auth_type, auth_url, and the credentials of the service user.',
    )


def check_endpoints(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the endpoints of Keystone respond."""
    session = _session(config)
    group = config[options.plugin_group(config)]
    urls = {f'[{AUTH_GROUP}] www_authenticate_uri': config[AUTH_GROUP].www_authenticate_uri}
    if 'auth_url' in group:
        urls['auth_url'] = group.auth_url
    verdicts = [_respond(config, session, name, url) for name, url in urls.items() if url]
    return verdicts or [skipped('No URL of Keystone is set.')]


def _respond(config: cfg.ConfigOpts, session: auth_session.Session, name: str, url: str) -> Verdict:
    try:
        response = session.get(url, authenticated=False, raise_exc=False)
    except auth_exceptions.ClientException as error:
        return judge_endpoint(name, url, None, _reason(error, config))
    return judge_endpoint(name, url, response.status_code)


def _reason(error: Exception, config: cfg.ConfigOpts) -> str:
    """Return why a request to Keystone failed; the reason of a network failure is innermost."""
    innermost: BaseException = error
    while innermost.__context__ is not None:
        innermost = innermost.__context__
    if isinstance(innermost, OSError) and innermost.strerror:
        return f'{innermost.strerror}.'
    return masking.mask(' '.join(str(error).split()), masking.values(config))


def judge_endpoint(name: str, url: str, status: int | None, error: str = '') -> Verdict:
    """Judge the response of an endpoint.

    :param name: the option with the URL
    :param status: the status code; None if there was no response
    :param error: why there was no response
    """
    if status is None:
        return failure(
            f'{name}: no response from {url}: {error}',
            'Check the URL, the network, and the certificates (cafile).',
        )
    # Keystone describes its versions in 200 OK, or in 300 Multiple Choices.
    if status in (200, 300):
        return _judge_scheme(name, url)
    return warning(
        f'{name}: {url} responds with the status code {status}.',
        'Check that the URL is that of Keystone, for example https://HOST:5000/v3.',
    )


def _judge_scheme(name: str, url: str) -> Verdict:
    """Judge the URL of an endpoint that responds."""
    if not encryption.is_plain_url(url):
        return ok(f'{name}: {url} responds.')
    return warning(
        f'{name}: {url} responds, without TLS. Anyone who can read the network traffic can read '
        'passwords and tokens.',
        'Configure TLS for Keystone, and use its https URL.',
    )


def check_credentials(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the service user can get a token and validate the tokens of clients."""
    return _with_token(config, lambda access: [_judge_user(access)])


def _judge_user(access: Any) -> Verdict:
    if access is None:
        return ok('The service has a token; this auth plugin does not describe its user.')
    roles = tuple(access.role_names or ())
    return judge_identity(Identity(access.username, access.project_name, roles))


def judge_refusal(message: str) -> Verdict:
    """Return the failure for a service user that does not get a token."""
    return failure(
        f'The service user does not get a token: {message}',
        f'Correct the credentials in [{AUTH_GROUP}], or create the user and its role.',
    )


def judge_identity(identity: Identity) -> Verdict:
    """Judge the roles of the service user."""
    roles = ', '.join(identity.roles) or 'none'
    who = f'User {identity.user}, project {identity.project or "none"}, roles: {roles}.'
    if _VALIDATING_ROLES & set(identity.roles):
        return ok(who)
    return warning(
        f'{who} By default, Keystone does not permit these roles to validate tokens of clients.',
        'Run `openstack role add --user USER --project PROJECT service`.',
    )


def check_identity_endpoint(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the service finds Keystone in the catalog, where it validates tokens."""
    return _with_token(config, lambda access: [_judge_identity_endpoint(config, access)])


def _judge_identity_endpoint(config: cfg.ConfigOpts, access: Any) -> Verdict:
    if access is None:
        return skipped('The token contains no catalog.')
    group = config[AUTH_GROUP]
    try:
        url = access.service_catalog.url_for(
            service_type='identity', interface=group.interface, region_name=group.region_name
        )
    except auth_exceptions.CatalogException:
        where = f' in the region {group.region_name}' if group.region_name else ''
        return failure(
            f'The catalog contains no {group.interface} endpoint of the type identity{where}. '
            'Every request with a token fails with 503 Service Unavailable.',
            f'Correct [{AUTH_GROUP}] region_name or interface.',
        )
    return _respond(config, _session(config), 'identity', url)


def check_catalog(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that clients find the service in the catalog, and that its endpoints respond."""
    return _with_token(config, lambda access: _judge_catalog_of(config, access))


def _judge_catalog_of(config: cfg.ConfigOpts, access: Any) -> list[Verdict]:
    if access is None or not access.has_service_catalog():
        return [skipped('The token contains no catalog.')]
    region = config[AUTH_GROUP].region_name
    listed = access.service_catalog.get_endpoints(service_type=_SERVICE_TYPE, region_name=region)
    items = [item for endpoints in listed.values() for item in endpoints]
    urls = sorted({str(item.get('url')) for item in items})
    session = _session(config, ENDPOINT_TIMEOUT)
    # One after the other, the requests could exceed the time limit of the check.
    with futures.ThreadPoolExecutor(max(len(urls), 1)) as pool:
        results = pool.map(lambda url: (url, _error(config, session, url)), urls)
        errors = dict(results)
    endpoints = [Endpoint(str(item.get('interface')), str(item.get('url'))) for item in items]
    return judge_catalog(endpoints, errors, region)


def _error(config: cfg.ConfigOpts, session: auth_session.Session, url: str) -> str:
    """Return why an endpoint of the service does not respond correctly; empty if it does."""
    try:
        response = session.get(url, authenticated=False, raise_exc=False)
    except auth_exceptions.ClientException as error:
        return f'no response: {_reason(error, config)}'
    return '' if response.status_code == 200 else f'the status code {response.status_code}.'


def judge_catalog(
    endpoints: Sequence[Endpoint], errors: Mapping[str, str], region: str | None
) -> list[Verdict]:
    """Judge the endpoints of the service in the catalog.

    :param endpoints: the endpoints in the region
    :param errors: why an endpoint does not respond, by URL; empty if it responds
    :param region: the configured region; None for all regions
    """
    if not endpoints:
        where = f' in the region {region}' if region else ''
        return [
            warning(
                f'The catalog contains no endpoint of the type placement{where}.',
                f'Run `openstack endpoint create --region {region or "REGION"} placement public '
                f'URL`, or correct [{AUTH_GROUP}] region_name.',
            )
        ]
    verdicts = [
        warning(
            f'The endpoint {endpoint} does not respond correctly: {errors[endpoint.url]}',
            'If the service runs, check the URL in the catalog, the web server, and the '
            f'certificate ([{AUTH_GROUP}] cafile).',
        )
        for endpoint in sorted(endpoints)
        if errors[endpoint.url]
    ]
    if 'internal' not in {endpoint.interface for endpoint in endpoints}:
        verdicts.append(
            warning(
                'The catalog contains no internal endpoint of the type placement. Other services '
                'use the internal endpoint first.',
                f'Run `openstack endpoint create --region {region or "REGION"} placement internal '
                'URL`.',
            )
        )
    listed = '; '.join(str(endpoint) for endpoint in sorted(endpoints))
    return verdicts or [ok(f'Endpoints of the service, which respond: {listed}.')]


def _session(config: cfg.ConfigOpts, timeout: int = TIMEOUT) -> auth_session.Session:
    """Return a session with the TLS options of keystonemiddleware and a short timeout."""
    group = config[AUTH_GROUP]
    return loading.session.Session().load_from_options(
        cert=group.certfile,
        key=group.keyfile,
        cacert=group.cafile,
        insecure=group.insecure,
        timeout=timeout,
    )


def _with_token(config: cfg.ConfigOpts, judge: Callable[[Any], list[Verdict]]) -> list[Verdict]:
    """Judge the token of the service user, or report that Keystone does not issue one."""
    try:
        access = _access(config)
    except auth_exceptions.ClientException as error:
        return [judge_refusal(_reason(error, config))]
    return judge(access)


def _access(config: cfg.ConfigOpts) -> Any:
    """Return the token of the service user with its identity; None if the plugin has none.

    :raises keystoneauth1.exceptions.ClientException: Keystone does not issue a token
    """
    session = _session(config)
    plugin: Any = loading.load_auth_from_conf_options(config, AUTH_GROUP)
    if hasattr(plugin, 'get_access'):
        return plugin.get_access(session)
    plugin.get_token(session)
    return None
