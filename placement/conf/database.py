"""Options of the database connection.

The options have the same names as the options of oslo.db in `[database]`. They are in a separate
group, because another service may use the same configuration file. The service passes all options
except `sync_on_startup` and the timeouts to oslo.db.
"""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

# The defaults of SQLAlchemy.
_POOL_SIZE = 5
_MAX_OVERFLOW = 10
# `/healthcheck` uses a connection outside of the pool.
_HEALTH_CHECK = 1

OPTS = [
    cfg.StrOpt(
        'connection',
        secret=True,
        required=True,
        help="""
The SQLAlchemy URL of the database, for example
`mysql+pymysql://placement:SECRET@db.example.com/placement?charset=utf8mb4`,
`postgresql+psycopg://placement:SECRET@db.example.com/placement` or
`sqlite:////var/lib/placement/placement.db`.

The database must exist. To create its tables, run `placement-manage
db sync` or set `sync_on_startup` to true.
""",
    ),
    cfg.StrOpt(
        'connection_parameters',
        default='',
        secret=True,  # for example ssl_key_password
        help='Parameters that are appended to the URL of the database, in the form '
        '`param1=value1&param2=value2`.',
    ),
    cfg.StrOpt(
        'slave_connection',
        secret=True,
        help='The SQLAlchemy URL of a read-only replica of the database.',
    ),
    cfg.BoolOpt(
        'sqlite_synchronous',
        default=True,
        help='Whether SQLite waits until committed data is written to the disk. If the option is '
        'false, a power failure can corrupt the database. Applies to SQLite only.',
    ),
    cfg.StrOpt(
        'mysql_sql_mode',
        default='TRADITIONAL',
        help="""
The SQL mode of every connection. Applies to MySQL and MariaDB only.

The value overrides the SQL mode of the server. To use the mode of
the server, set the option to an empty value (`mysql_sql_mode=`). In
both cases, Placement adds STRICT_ALL_TABLES to the mode, so that
the server does not truncate values, and removes
EMPTY_STRING_IS_NULL.
""",
    ),
    cfg.IntOpt(
        'mysql_wsrep_sync_wait',
        min=0,
        max=15,
        help="""
The value of the session variable `wsrep_sync_wait` for every
connection. Applies to Galera clusters only.

The value is a bit mask of statement types. Before a statement of
these types, a node waits until it has applied all transactions that
other nodes have committed.

If the option is not set, Placement sets the variable to 7 on nodes
of a Galera cluster (`wsrep_on`) and does not change the variable on
other servers. With 7, the first statement of every transaction
waits, so that responses reflect all writes that other nodes have
acknowledged. If the option is set, Placement sets the variable on
every server. A value without one of the bits 1 (SELECT), 2 (UPDATE
and DELETE) and 4 (INSERT) is faster, but requests can then return
outdated data, or be rejected because of outdated data. Placement
logs a warning.
""",
    ),
    cfg.IntOpt(
        'connection_recycle_time',
        default=3600,
        help='The maximum age of a connection in seconds. An older connection is replaced before '
        'its next use. The value should be smaller than the time after which the server '
        'closes idle connections.',
    ),
    cfg.IntOpt(
        'max_pool_size',
        help='The maximum number of database connections in the pool of a process. 0 means no '
        'limit. If the option is not set, the default of SQLAlchemy applies, which is 5.',
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        help='The maximum number of times that a process retries to connect to the database when '
        'the process starts. -1 means no limit. If the option is not set, the commands '
        '`placement-manage` and `placement-status` do not retry.',
    ),
    cfg.IntOpt(
        'retry_interval',
        default=10,
        help='The number of seconds between two attempts to connect to the database when a '
        'process starts.',
    ),
    cfg.IntOpt(
        'max_overflow',
        help='The number of connections that a process can open beyond `max_pool_size` '
        'while all pooled connections are in use. If the option is not set, the default '
        'of SQLAlchemy applies, which is 10.',
    ),
    cfg.IntOpt(
        'connection_debug',
        default=0,
        help='The verbosity of SQL debugging information in the log, from 0 (no information) to '
        '100 (all information).',
    ),
    cfg.BoolOpt(
        'connection_trace',
        default=False,
        help='Whether each SQL statement contains a comment that names the Python code that '
        'executes the statement. The comment is visible in the log of the database server.',
    ),
    cfg.IntOpt(
        'pool_timeout',
        help='The maximum number of seconds that a request waits for a free connection if all '
        'connections are in use. After that time, the response is 503 Service Unavailable. '
        'If the option is not set, the default of SQLAlchemy applies, which is 30.',
    ),
    # oslo.db does not have the following options.
    cfg.IntOpt(
        'connect_timeout',
        default=10,
        min=0,
        help="""
The maximum number of seconds for connecting to the database.

The limit includes the handshake and the login. 0 means no limit
except that of the driver. If the URL or `connection_parameters`
contains `connect_timeout`, that value applies instead.
""",
    ),
    cfg.IntOpt(
        'read_timeout',
        default=30,
        min=0,
        help="""
The maximum number of seconds that Placement waits for data from the
database server.

After that time, the connection counts as lost, and the response is
503 Service Unavailable. The value should be greater than 15, because
a statement can wait for a lock for 15 seconds. 0 means no limit.
Schema migrations and the commands of Placement have no limit,
except `placement-manage exporter`.

Applies to PyMySQL, mysqlclient and psycopg 3. If the URL or
`connection_parameters` of PyMySQL or mysqlclient contains
`read_timeout`, that value applies instead.
""",
    ),
    cfg.IntOpt(
        'write_timeout',
        default=30,
        min=0,
        help="""
The maximum number of seconds for sending a statement to the database
server. 0 means no limit.

Applies to PyMySQL and mysqlclient. For psycopg 3, `read_timeout`
applies to sending, too. If the URL or `connection_parameters`
contains `write_timeout`, that value applies instead.
""",
    ),
    cfg.BoolOpt(
        'sync_on_startup',
        default=False,
        help="""
Whether a process upgrades the database schema when the process
starts.

If several processes start at the same time, one process upgrades
the schema, and the other processes wait. If the option is false,
run `placement-manage db sync` before you start the service.
""",
    ),
]


def connections_of_process(options: Mapping[str, Any], threads: int | None = None) -> int | None:
    """Return the maximum number of connections of a process, including that of `/healthcheck`.

    :param options: the values of this group
    :param threads: the number of threads that process requests. Each uses one connection at a time,
        for a read or for a write. The process keeps at most `max_pool_size` idle ones
    :returns: None if neither the options nor the threads limit the number
    """
    size, overflow = options.get('max_pool_size'), options.get('max_overflow')
    size = _POOL_SIZE if size is None else size
    overflow = _MAX_OVERFLOW if overflow is None else overflow
    unlimited = size == 0 or overflow < 0
    limits = [] if unlimited else [size + overflow]
    if threads is not None:
        limits.append(threads + min(threads, size or threads))
    return min(limits) + _HEALTH_CHECK if limits else None
