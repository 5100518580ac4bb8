"""Checks of Keystone and of memcached, in which the service stores validated tokens."""

from concurrent import futures
import contextlib
import secrets
import ssl
from typing import Any
from urllib import parse

from keystoneauth1 import exceptions as auth_exceptions
from keystoneauth1 import loading, session
from keystonemiddleware import opts as middleware_opts
import oslo_cache
from oslo_config import cfg
from pymemcache.client.base import Client

from placement import token_cache
from placement.admin.preflight import configuration, database
from placement.admin.preflight.model import Skipped, Steps, Verdict, check, failure, ok, warning
from placement.conf import authtoken
from placement.conf.authtoken import GROUP

# In seconds, for each request to Keystone, and to an endpoint of the catalog.
_TIMEOUT, _ENDPOINT_TIMEOUT = 10, 5
# In seconds: for the connection to a memcached server and for each response, and until memcached
# removes the written value.
_WAIT, _EXPIRATION = 3, 10

_READABLE = 'Anyone who can read the network traffic can read and use tokens.'
_OPTIONS, _CREDENTIALS = 'Keystone Options', 'Service Credentials'


def register_libraries(config: cfg.ConfigOpts) -> None:
    """Register the options that libraries register when the application is built.

    :param config: the parsed configuration
    """
    for group, opts in middleware_opts.list_auth_token_opts():
        config.register_opts(opts, group=group)
    oslo_cache.configure(config)
    # Checks of their own report an unknown plugin, and a reference to an unknown option.
    with contextlib.suppress(auth_exceptions.NoMatchingPlugin, cfg.Error):
        loading.register_auth_conf_options(config, GROUP)
        section = config[GROUP].auth_section or GROUP
        if plugin := config[section].auth_type:
            config.register_opts(loading.get_auth_plugin_conf_options(plugin), group=section)


@check(_OPTIONS)
def check_options(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if ``auth_type`` is not set or unknown, or if ``memcache_secret_key`` is missing.

    *Failure* if the address of a memcached server is invalid. *Warning* if ``www_authenticate_uri``
    is not set, because a 401 response then does not name the Keystone that clients can use.
    *Warning* if ``service_token_roles_required`` is false, because any token is then valid as a
    service token. *Warning* if ``insecure`` is true, because another host can then replace Keystone
    and make any token valid.
    """
    if config.api.auth_strategy == 'noauth2':
        raise Skipped('The service does not use Keystone (noauth2).')
    group = config[GROUP]
    if not group.www_authenticate_uri:
        yield warning('www_authenticate_uri is not set.', 'Set it to the public URL of Keystone.')
    if not group.service_token_roles_required:
        yield warning('service_token_roles_required is false.', 'Set it to true.')
    if group.insecure:
        yield warning('insecure is true: another host can replace Keystone.', 'Set cafile instead.')
    # Without valid options, the service does not start, or it rejects every token.
    authtoken.validate(config)
    loading.get_plugin_loader(config[group.auth_section or GROUP].auth_type)


# Requests ---------------------------------------------------------------------


@check('Keystone Endpoints', needs=_OPTIONS)
def check_endpoints(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if ``www_authenticate_uri`` or ``auth_url`` does not respond.

    *Failure* if ``cafile``, ``certfile``, or ``keyfile`` does not exist, for an ``https://`` URL.
    *Warning* if the response is not that of Keystone, or if one of these is an ``http://`` URL of
    another host.
    """
    group = config[GROUP]
    urls = {
        f'[{GROUP}] www_authenticate_uri': group.www_authenticate_uri,
        # Some auth plugins have no URL.
        'auth_url': getattr(config[group.auth_section or GROUP], 'auth_url', None),
    }
    if not any(urls.values()):
        raise Skipped('No URL of Keystone is set.')
    for name, url in urls.items():
        if url:
            yield _endpoint(config, name, url)


def _endpoint(config: cfg.ConfigOpts, name: str, url: str) -> Verdict:
    """Request an endpoint of Keystone, and judge its response and its URL.

    :param name: the option with the URL
    """
    status, reason = _response(config, url)
    # Keystone describes its versions in 200 OK, or in 300 Multiple Choices.
    if status not in (200, 300):
        judge = warning if status else failure
        return judge(
            f'{name}: {url} does not respond correctly: {reason}',
            'Check the URL, for example https://HOST:5000/v3, the network, and cafile.',
        )
    if is_plain_url(url):
        return warning(
            f'{name}: {url} responds, without TLS. {_READABLE}', 'Use the https URL of Keystone.'
        )
    return ok(f'{name}: {url} responds.')


def is_plain_url(url: str) -> bool:
    """Return whether HTTP requests to a URL leave this host without TLS."""
    parts = parse.urlsplit(url)
    return parts.scheme == 'http' and not database.is_local(parts.hostname)


def _reason(error: Exception, config: cfg.ConfigOpts) -> str:
    """Return why a request to Keystone failed; the reason of a network failure is innermost."""
    innermost: BaseException = error
    while innermost.__context__ is not None:
        innermost = innermost.__context__
    if isinstance(innermost, OSError) and innermost.strerror:
        return f'{innermost.strerror}.'
    return configuration.masked(' '.join(str(error).split()), config)


@check(_CREDENTIALS, needs=_OPTIONS)
def check_credentials(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the service user does not get a token.

    *Warning* if the user has neither the role ``service`` nor the role ``admin``. By default,
    Keystone does not permit other roles to validate the tokens of clients.
    """
    try:
        access = _access(config)
    except (auth_exceptions.ClientException, OSError) as error:
        yield failure(
            f'The service user does not get a token: {_reason(error, config)}',
            f'Correct the credentials in [{GROUP}], or create the user and its role.',
        )
        return ''
    roles = access.role_names or ()
    listed = ', '.join(roles) or 'none'
    who = f'User {access.username}, project {access.project_name or "none"}, roles: {listed}.'
    # By default, Keystone permits users with one of these roles to validate the tokens of others.
    if not {'service', 'admin'} & set(roles):
        yield warning(
            f'{who} By default, Keystone does not let them validate tokens of clients.',
            'Run `openstack role add --user USER --project PROJECT service`.',
        )
    return who


@check('Identity Endpoint', needs=_CREDENTIALS)
def check_identity_endpoint(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the catalog contains no endpoint of the type ``identity`` that responds.

    The service validates tokens at the endpoint in ``[keystone_authtoken] region_name`` with its
    ``interface``; without it, every request with a token fails with 503 Service Unavailable.
    *Warning* as for ``Keystone Endpoints``.
    """
    group = config[GROUP]
    catalog = _access(config).service_catalog
    try:
        url = catalog.url_for('identity', group.interface, region_name=group.region_name)
    except auth_exceptions.CatalogException as error:
        yield failure(f'{error}.', f'Correct [{GROUP}] region_name or interface.')
    else:
        yield _endpoint(config, 'identity', url)


@check('Service Catalog', needs=_CREDENTIALS)
def check_catalog(config: cfg.ConfigOpts) -> Steps:
    """*Warning* if the catalog contains no internal endpoint of the type ``placement``.

    The check applies to ``[keystone_authtoken] region_name`` or, without it, to all regions. It
    requests each endpoint with ``cafile`` or ``insecure`` of ``[keystone_authtoken]``. *Warning*
    for each endpoint that does not respond with 200 OK within 5 seconds. Before a rollout, no
    endpoint responds.
    """
    region, catalog = config[GROUP].region_name, _access(config).service_catalog
    found = catalog.get_endpoint_data_list('placement', interface=None, region_name=region)
    endpoints = sorted((str(one.interface), str(one.url)) for one in found)
    # One after the other, the requests could exceed the time limit of the check.
    with futures.ThreadPoolExecutor() as pool:
        responses = pool.map(lambda one: _response(config, one[1], _ENDPOINT_TIMEOUT), endpoints)
    for (interface, url), (status, reason) in zip(endpoints, responses, strict=True):
        if status != 200:
            yield warning(
                f'The endpoint {interface} {url} does not respond correctly: {reason}',
                'If the service runs, check the URL, the web server, and its certificate (cafile).',
            )
    if 'internal' not in dict(endpoints):
        where = f' in the region {region}' if region else ''
        yield warning(
            f'The catalog contains no internal endpoint of the type placement{where}.',
            'Run `openstack endpoint create --region '
            f'{region or "REGION"} placement internal URL`.',
        )
    described = '; '.join(f'{interface} {url}' for interface, url in endpoints)
    return f'Endpoints of the service, which respond: {described}.'


def _response(config: cfg.ConfigOpts, url: str, timeout: int = _TIMEOUT) -> tuple[int | None, str]:
    """Request a URL. Return the status code, None without a response, and its description."""
    try:
        response = _session(config, timeout).get(url, authenticated=False, raise_exc=False)
    # An OSError names a file for TLS that does not exist.
    except (auth_exceptions.ClientException, OSError) as error:
        return None, f'no response: {_reason(error, config)}'
    return response.status_code, f'the status code {response.status_code}.'


def _session(config: cfg.ConfigOpts, timeout: int = _TIMEOUT) -> session.Session:
    """Return a session with the TLS options of keystonemiddleware and a short timeout."""
    group = config[GROUP]
    files = {'cacert': group.cafile, 'cert': group.certfile, 'key': group.keyfile}
    options = {'insecure': group.insecure, 'timeout': timeout, **files}
    return loading.session.Session().load_from_options(**options)


def _access(config: cfg.ConfigOpts) -> Any:
    """Return the token of the service user with its identity.

    :raises keystoneauth1.exceptions.ClientException: Keystone does not issue a token
    :raises Skipped: the auth plugin does not describe the user of its token
    """
    plugin: Any = loading.load_auth_from_conf_options(config, GROUP)
    if not hasattr(plugin, 'get_access'):
        raise Skipped('The auth plugin does not describe its user.')
    return plugin.get_access(_session(config))


# memcached --------------------------------------------------------------------


@check('Token Cache', needs=_OPTIONS)
def check_token_cache(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if ``memcached_servers`` is set without ``memcache_security_strategy``.

    Whoever can write to memcached can then make any token valid. The remedy names the way without
    memcached. *Warning* if the library cryptography is missing, or if ``memcache_sasl_enabled`` is
    true, because the service then starts without memcached. The check writes a value to each server
    and reads it, with the configured TLS. *Warning* for each server where this fails, because
    Keystone then validates the tokens, and for each server on another host without
    ``memcache_tls_enabled``. Without ``memcached_servers``, each process remembers tokens by
    itself. See :ref:`shared-tokens`.
    """
    addresses = authtoken.memcached_servers(config)
    if obstacle := authtoken.obstacle(config) if addresses else None:
        yield warning(
            f'Each process remembers tokens by itself, because {obstacle.reason}.', obstacle.remedy
        )
        return ''
    if addresses and authtoken.strategy(config) == 'none':
        yield failure(
            'Without memcache_security_strategy, a writer to memcached can make any token valid.',
            f'Remove [{GROUP}] memcached_servers, or set memcache_security_strategy to ENCRYPT.',
        )
    for server, address in addresses.items():
        yield _server(server, address, token_cache.tls_context(config))
    return 'The service uses no memcached. Each process remembers tokens by itself.'


def _server(server: str, address: authtoken.Address, tls: ssl.SSLContext | None) -> Verdict:
    """Write and read a value. Judge the result, and whether the connection needs TLS.

    :param server: the server as it is configured
    """
    key, value = f'placement-preflight/{secrets.token_hex(16)}', b'{}'
    client = Client(address, connect_timeout=_WAIT, timeout=_WAIT, tls_context=tls)
    try:
        with contextlib.closing(client):
            client.set(key, value, _EXPIRATION, noreply=False)
            problem = '' if client.get(key) == value else 'A written value cannot be read.'
    # A client raises other exceptions, too, if the response is not one of memcached.
    except Exception as error:
        problem = f'{type(error).__name__}: {error}'
    if problem:
        return warning(
            f'The server {server} does not work: {problem}', 'Start it, or correct its options.'
        )
    if tls or isinstance(address, str) or database.is_local(address[0]):
        return ok(f'The server {server} stores values.')
    return warning(
        f'The server {server} stores values, without TLS. {_READABLE}',
        f'Run memcached on this host, or set [{GROUP}] memcache_tls_enabled to true.',
    )
