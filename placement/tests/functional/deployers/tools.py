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
_ENCRYPTED = (
    _KEYSTONE
    + """
memcache_security_strategy = ENCRYPT
memcache_secret_key = secret
"""
)
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
_SITE = """
<VirtualHost *:$port>
    WSGIDaemonProcess placement-api processes=1 threads=1 user=$user group=$group \\
        home=$home display-name=%{GROUP}
    WSGIProcessGroup placement-api
    WSGIApplicationGroup %{GLOBAL}
    WSGIPassAuthorization On
    WSGIScriptAlias / "/usr/bin/placement-api"
    ErrorLogFormat "%{cu}t %M"
</VirtualHost>
<Directory /usr/bin>
    <Files placement-api>
        Require all granted
    </Files>
</Directory>
"""
_CGI_BIN = '/var/www/cgi-bin/placement/placement-api'
_CGI_BIN_SITE = _SITE.replace('/usr/bin/placement-api', _CGI_BIN).replace(
    '/usr/bin', '/var/www/cgi-bin/placement'
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


_HELM_FILES = {
    _CONFIGURATION: f"""
[DEFAULT]
log_config_append = /etc/placement/logging.conf
{_DATABASE}
max_retries = -1
[oslo_policy]
policy_file = /etc/placement/policy.yaml
{_ENCRYPTED}
auth_version = v3
service_type = placement
""",
    '/etc/placement/logging.conf': """
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
""",
    '/etc/placement/policy.yaml': 'admin_api: role:admin\n',
}

TOOLS = {
    'kolla-ansible': Tool(
        environment='/var/lib/kolla/venv',
        files={
            _CONFIGURATION: f"""
[DEFAULT]
log_file = /var/log/kolla/placement/placement-api.log
state_path = /var/lib/placement
[oslo_concurrency]
lock_path = /var/lib/placement/tmp
[cache]
backend = oslo_cache.memcache_pool
enabled = true
memcache_servers = $memcached
{_DATABASE}
connection_recycle_time = 10
max_overflow = 1000
max_pool_size = 1
max_retries = -1
{_PROXY}
{_ENCRYPTED}
service_type = placement
region_name = $region
""",
            '/etc/placement/placement-api-uwsgi.ini': f"""
{_UWSGI}
module = placement.wsgi.api:application
http = 127.0.0.1:$port
http-auto-chunked = true
http-chunked-input = true
http-raw-body = true
logto2 = /var/log/kolla/placement/placement-api-uwsgi.log
plugins-dir = /usr/lib/uwsgi/plugins
plugins = python3
socket-timeout = 30
static-map = /static=/var/lib/kolla/venv/lib/python3/site-packages/static
""",
        },
        uwsgi='/etc/placement/placement-api-uwsgi.ini',
        folders=('/var/log/kolla/placement',),
    ),
    'OpenStack-Ansible': Tool(
        environment='/openstack/venvs/placement-32.0.0',
        files={
            _CONFIGURATION: f"""
[DEFAULT]
use_stderr = true
{_DATABASE}
max_overflow = 50
max_pool_size = 5
pool_timeout = 30
connection_recycle_time = 600
{_PROXY}
{_ENCRYPTED}
insecure = false
token_cache_time = 300
service_token_roles = service
service_token_roles_required = true
service_type = placement
region_name = $region
""",
            '/etc/uwsgi/placement-api.ini': f"""
{_UWSGI}
virtualenv = /openstack/venvs/placement-32.0.0
wsgi-file = /openstack/venvs/placement-32.0.0/bin/placement-api
http-socket = 127.0.0.1:$port
threads = 1
""",
        },
        uwsgi='/etc/uwsgi/placement-api.ini',
        health='/healthcheck',
    ),
    'charm': Tool(
        environment='/usr',
        files={
            _CONFIGURATION: f"""
[DEFAULT]
log_dir = /var/log/placement
{_DATABASE}
{_PROXY}
{_ENCRYPTED}
auth_version = v3
signing_dir = /var/cache/placement
service_token_roles = admin
service_token_roles_required = True
""",
            '/etc/apache2/sites-enabled/wsgi-openstack-api.conf': (
                f'KeepAliveTimeout 75\nMaxKeepAliveRequests 1000\n{_SITE}'
            ),
        },
        apache='/etc/apache2/sites-enabled/wsgi-openstack-api.conf',
    ),
    'OpenStack-Helm': Tool(
        environment='/var/lib/openstack',
        files={
            **_HELM_FILES,
            '/etc/placement/placement-api-uwsgi.ini': f"""
{_UWSGI}
wsgi-file = /var/lib/openstack/bin/placement-api
http-socket = 127.0.0.1:$port
log-x-forwarded-for = true
procname-prefix-spaced = placement-api:
route-user-agent = ^kube-probe.* donotlog:
""",
        },
        uwsgi='/etc/placement/placement-api-uwsgi.ini',
    ),
    'OpenStack-Helm with Apache': Tool(
        environment='/var/lib/openstack',
        files={
            **_HELM_FILES,
            '/etc/apache2/conf-enabled/wsgi-placement.conf': f"""
{_CGI_BIN_SITE}
Alias /placement {_CGI_BIN}
<Location /placement>
    SetHandler wsgi-script
    Options +ExecCGI
    WSGIProcessGroup placement-api
    WSGIApplicationGroup %{{GLOBAL}}
    WSGIPassAuthorization On
</Location>
""",
        },
        apache='/etc/apache2/conf-enabled/wsgi-placement.conf',
        script=_CGI_BIN,
        options=('--config-file', _CONFIGURATION),
    ),
    'placement-operator': Tool(
        environment='/usr',
        files={
            f'{_CONFIGURATIONS}/placement.conf': f"""
[DEFAULT]
debug = true
log_file = /var/log/placement/placement-api.log
{_DATABASE}
max_retries = -1
[oslo_policy]
enforce_scope = True
enforce_new_defaults = True
{_PROXY}
{_KEYSTONE}
""",
            f'{_CONFIGURATIONS}/custom.conf': '[api]\nslow_request_seconds = 9\n',
            '/etc/httpd/conf/httpd.conf': f'TimeOut 60\nTraceEnable Off\n{_SITE}',
        },
        apache='/etc/httpd/conf/httpd.conf',
        options=('--config-dir', _CONFIGURATIONS),
    ),
    'DevStack': Tool(
        environment='/opt/stack/data/venv',
        files={
            _CONFIGURATION: f'[DEFAULT]\ndebug = True\n{_DATABASE}{_KEYSTONE}',
            '/etc/placement/placement-uwsgi.ini': f"""
{_UWSGI}
module = placement.wsgi.api:application
virtualenv = /opt/stack/data/venv
socket = /var/run/uwsgi/placement-api.socket
chmod-socket = 666
plugins = http,python3
socket-timeout = 30
start-time = %t
""",
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
    ),
}
