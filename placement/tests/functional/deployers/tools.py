"""What deployment tools write and execute: a table of their paths, options, and commands.

The files are minimal. The tests replace `$` and a name, and put absolute paths below a directory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The options that all tools set. A tool can append options of `[keystone_authtoken]`.
_DATABASE = """
[placement_database]
connection = $database
"""
_KEYSTONE = """
[api]
auth_strategy = keystone
[keystone_authtoken]
www_authenticate_uri = $keystone
auth_url = $keystone
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = placement
password = $password
memcached_servers = $memcached
"""
_ENCRYPTED = """
memcache_security_strategy = ENCRYPT
memcache_secret_key = secret
"""
_PROXY = """
[oslo_middleware]
enable_proxy_headers_parsing = true
"""

_UWSGI = """
[uwsgi]
add-header = Connection: close
buffer-size = 65535
die-on-term = true
enable-threads = true
exit-on-reload = false
hook-master-start = unix_signal:15 gracefully_kill_them_all
lazy-apps = true
master = true
processes = 1
thunder-lock = true
worker-reload-mercy = 80
"""
_MODULE = 'module = placement.wsgi.api:application\n'

_SITE = """
<VirtualHost *:$port>
    WSGIDaemonProcess placement-api processes=1 threads=1 user=$user group=$group \\
        home=$home display-name=%{GROUP}
    WSGIProcessGroup placement-api
    WSGIApplicationGroup %{GLOBAL}
    WSGIPassAuthorization On
    WSGIScriptAlias / "SCRIPT"
    ErrorLogFormat "%{cu}t %M"
</VirtualHost>
"""
_CGI_BIN = '/var/www/cgi-bin/placement/placement-api'
_CGI_BIN_SITE = _SITE.replace('SCRIPT', _CGI_BIN) + (
    '<Directory "/var/www/cgi-bin/placement">\n'
    '    Options -Indexes +FollowSymLinks +MultiViews\n'
    '    AllowOverride None\n'
    '    Require all granted\n'
    '</Directory>\n'
)
_USR_BIN_SITE = _SITE.replace('SCRIPT', '/usr/bin/placement-api') + (
    '<Directory /usr/bin>\n'
    '    <Files placement-api>\n'
    '        Require all granted\n'
    '    </Files>\n'
    '</Directory>\n'
)

_CONFIGURATION = '/etc/placement/placement.conf'
_CONFIGURATIONS = '/etc/placement/placement.conf.d'


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool runs Placement.

    :ivar environment: the directory in which `bin` contains the programs
    :ivar files: the content of each file
    :ivar uwsgi: the path of the file for uWSGI, if it runs
    :ivar apache: the path of the site of Apache, if it runs
    :ivar folders: the directories for logs and sockets
    :ivar script: the path to which the tool copies `placement-api`, if it does
    :ivar options: the options of all commands
    :ivar prefix: the path prefix
    :ivar health: the path of the health check below the prefix
    """

    environment: str
    files: Mapping[str, str]
    uwsgi: str = ''
    apache: str = ''
    folders: Sequence[str] = ('/var/log/placement',)
    script: str = ''
    options: Sequence[str] = ()
    prefix: str = ''
    health: str = '/'


KOLLA_ANSIBLE = Tool(
    environment='/var/lib/kolla/venv',
    files={
        _CONFIGURATION: (
            '[DEFAULT]\n'
            'debug = false\n'
            'log_file = /var/log/kolla/placement/placement-api.log\n'
            'state_path = /var/lib/placement\n'
            '[oslo_concurrency]\n'
            'lock_path = /var/lib/placement/tmp\n'
            '[cache]\n'
            'backend = oslo_cache.memcache_pool\n'
            'enabled = true\n'
            'memcache_servers = $memcached\n'
            + _DATABASE
            + 'connection_recycle_time = 10\n'
            + 'max_overflow = 1000\n'
            + 'max_pool_size = 1\n'
            + 'max_retries = -1\n'
            + _PROXY
            + _KEYSTONE
            + _ENCRYPTED
            + 'service_type = placement\n'
            + 'region_name = $region\n'
        ),
        '/etc/placement/placement-api-uwsgi.ini': (
            _UWSGI
            + _MODULE
            + 'http = 127.0.0.1:$port\n'
            + 'http-auto-chunked = true\n'
            + 'http-chunked-input = true\n'
            + 'http-raw-body = true\n'
            + 'logto2 = /var/log/kolla/placement/placement-api-uwsgi.log\n'
            + 'plugins-dir = /usr/lib/uwsgi/plugins\n'
            + 'plugins = python3\n'
            + 'socket-timeout = 30\n'
            + 'static-map = /static=/var/lib/kolla/venv/lib/python3/site-packages/static\n'
        ),
    },
    uwsgi='/etc/placement/placement-api-uwsgi.ini',
    folders=('/var/log/kolla/placement',),
)

OPENSTACK_ANSIBLE = Tool(
    environment='/openstack/venvs/placement-32.0.0',
    files={
        _CONFIGURATION: (
            '[DEFAULT]\n'
            'debug = false\n'
            'use_stderr = true\n'
            + _DATABASE
            + 'max_overflow = 50\n'
            + 'max_pool_size = 5\n'
            + 'pool_timeout = 30\n'
            + 'connection_recycle_time = 600\n'
            + _PROXY
            + _KEYSTONE
            + _ENCRYPTED
            + 'insecure = false\n'
            + 'token_cache_time = 300\n'
            + 'service_token_roles = service\n'
            + 'service_token_roles_required = true\n'
            + 'service_type = placement\n'
            + 'region_name = $region\n'
        ),
        '/etc/uwsgi/placement-api.ini': (
            _UWSGI
            + 'virtualenv = /openstack/venvs/placement-32.0.0\n'
            + 'wsgi-file = /openstack/venvs/placement-32.0.0/bin/placement-api\n'
            + 'http-socket = 127.0.0.1:$port\n'
            + 'threads = 1\n'
        ),
    },
    uwsgi='/etc/uwsgi/placement-api.ini',
    health='/healthcheck',
)

CHARM = Tool(
    environment='/usr',
    files={
        _CONFIGURATION: (
            '[DEFAULT]\n'
            'debug = False\n'
            'log_dir = /var/log/placement\n'
            + _DATABASE
            + _PROXY
            + _KEYSTONE
            + _ENCRYPTED
            + 'auth_version = v3\n'
            + 'signing_dir = /var/cache/placement\n'
            + 'service_token_roles = admin\n'
            + 'service_token_roles_required = True\n'
        ),
        '/etc/apache2/sites-enabled/wsgi-openstack-api.conf': (
            'KeepAliveTimeout 75\n'
            'MaxKeepAliveRequests 1000\n'
            + _SITE.replace('SCRIPT', '/usr/bin/placement-api')
            + '<Directory /usr/bin>\n'
            + '    Require all granted\n'
            + '</Directory>\n'
        ),
    },
    apache='/etc/apache2/sites-enabled/wsgi-openstack-api.conf',
)

SUNBEAM = Tool(
    environment='/usr',
    files={
        _CONFIGURATION: '[DEFAULT]\ndebug = False\n' + _DATABASE + _KEYSTONE,
        '/etc/apache2/sites-available/wsgi-placement-api.conf': _USR_BIN_SITE,
    },
    apache='/etc/apache2/sites-available/wsgi-placement-api.conf',
)

_HELM_CONFIGURATION = (
    '[DEFAULT]\n'
    'debug = false\n'
    'use_syslog = false\n'
    'log_config_append = /etc/placement/logging.conf\n'
    + _DATABASE
    + 'max_retries = -1\n'
    + '[oslo_policy]\n'
    + 'policy_file = /etc/placement/policy.yaml\n'
    + _KEYSTONE
    + _ENCRYPTED
    + 'auth_version = v3\n'
    + 'service_type = placement\n'
)
_HELM_LOGGING = """
[loggers]
keys = root,placement
[handlers]
keys = stdout,null
[formatters]
keys = context,default
[logger_root]
level = WARNING
handlers = null
[logger_placement]
level = INFO
handlers = stdout
qualname = placement
[handler_null]
class = logging.NullHandler
formatter = default
args = ()
[handler_stdout]
class = StreamHandler
args = (sys.stdout,)
formatter = context
[formatter_context]
class = oslo_log.formatters.ContextFormatter
datefmt = %Y-%m-%d %H:%M:%S
[formatter_default]
format = %(message)s
"""
_HELM_FILES = {
    _CONFIGURATION: _HELM_CONFIGURATION,
    '/etc/placement/logging.conf': _HELM_LOGGING,
    '/etc/placement/policy.yaml': 'admin_api: role:admin\n',
}

OPENSTACK_HELM = Tool(
    environment='/var/lib/openstack',
    files={
        **_HELM_FILES,
        '/etc/placement/placement-api-uwsgi.ini': (
            _UWSGI
            + 'wsgi-file = /var/lib/openstack/bin/placement-api\n'
            + 'http-socket = 127.0.0.1:$port\n'
            + 'log-x-forwarded-for = true\n'
            + 'procname-prefix-spaced = placement-api:\n'
            + 'route-user-agent = ^kube-probe.* donotlog:\n'
        ),
    },
    uwsgi='/etc/placement/placement-api-uwsgi.ini',
)

OPENSTACK_HELM_APACHE = Tool(
    environment='/var/lib/openstack',
    files={
        **_HELM_FILES,
        '/etc/apache2/conf-enabled/wsgi-placement.conf': (
            _CGI_BIN_SITE
            + f'Alias /placement {_CGI_BIN}\n'
            + '<Location /placement>\n'
            + '    SetHandler wsgi-script\n'
            + '    Options +ExecCGI\n'
            + '    WSGIProcessGroup placement-api\n'
            + '    WSGIApplicationGroup %{GLOBAL}\n'
            + '    WSGIPassAuthorization On\n'
            + '</Location>\n'
        ),
    },
    apache='/etc/apache2/conf-enabled/wsgi-placement.conf',
    script=_CGI_BIN,
    options=('--config-file', _CONFIGURATION),
)

PLACEMENT_OPERATOR = Tool(
    environment='/usr',
    files={
        f'{_CONFIGURATIONS}/placement.conf': (
            '[DEFAULT]\n'
            'debug = true\n'
            'log_file = /var/log/placement/placement-api.log\n'
            + _DATABASE
            + 'max_retries = -1\n'
            + '[oslo_policy]\n'
            + 'enforce_scope = True\n'
            + 'enforce_new_defaults = True\n'
            + _PROXY
            + _KEYSTONE
        ),
        f'{_CONFIGURATIONS}/custom.conf': ('[placement]\nrandomize_allocation_candidates = true\n'),
        '/etc/httpd/conf/httpd.conf': 'TimeOut 60\nTraceEnable Off\n' + _USR_BIN_SITE,
    },
    apache='/etc/httpd/conf/httpd.conf',
    options=('--config-dir', _CONFIGURATIONS),
)

PUPPET_PLACEMENT = Tool(
    environment='/usr',
    files={
        _CONFIGURATION: (
            '[DEFAULT]\n'
            'debug = False\n'
            'log_dir = /var/log/placement\n'
            + _DATABASE
            + '[oslo_policy]\n'
            + 'policy_file = /etc/placement/policy.yaml\n'
            + _PROXY
            + _KEYSTONE
            + 'region_name = $region\n'
        ),
        '/etc/placement/policy.yaml': '',
        '/etc/httpd/conf.d/10-placement_wsgi.conf': (
            _CGI_BIN_SITE + 'SetEnvIf X-Forwarded-Proto https HTTPS=1\n'
        ),
    },
    apache='/etc/httpd/conf.d/10-placement_wsgi.conf',
    script=_CGI_BIN,
    options=('--config-file', _CONFIGURATION),
)

DEVSTACK = Tool(
    environment='/opt/stack/data/venv',
    files={
        _CONFIGURATION: '[DEFAULT]\ndebug = True\n' + _DATABASE + _KEYSTONE,
        '/etc/placement/placement-uwsgi.ini': (
            _UWSGI
            + _MODULE
            + 'virtualenv = /opt/stack/data/venv\n'
            + 'socket = /var/run/uwsgi/placement-api.socket\n'
            + 'chmod-socket = 666\n'
            + 'plugins = http,python3\n'
            + 'socket-timeout = 30\n'
            + 'start-time = %t\n'
        ),
        '/etc/apache2/sites-enabled/placement-api.conf': (
            'ProxyPass "/placement" '
            '"unix:/var/run/uwsgi/placement-api.socket|uwsgi://uwsgi-uds-placement-api" '
            'retry=0 acquire=1\n'
        ),
    },
    uwsgi='/etc/placement/placement-uwsgi.ini',
    apache='/etc/apache2/sites-enabled/placement-api.conf',
    folders=('/var/run/uwsgi',),
    prefix='/placement',
    health='',
)
