"""Options of the database connection.

They have the names of oslo.db's options in `[database]`, but a separate group, because another
service may share the configuration file. All except `sync_on_startup` are passed to oslo.db.
"""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'placement_database',
    title='Placement database options',
    help="""
The database of the service, which stores all its state.

Placement supports SQLite, MySQL, MariaDB (including Galera
clusters) and PostgreSQL.
""",
)

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

The database has to exist. Create its tables with `placement-manage
db sync`, or set `sync_on_startup`.
""",
    ),
    cfg.StrOpt(
        'connection_parameters',
        default='',
        help='Parameters to append to the URL of the database, in the form '
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
        help='Whether SQLite waits until data is written to the disk. If false, a power failure '
        'can corrupt the database. Applies to SQLite only.',
    ),
    cfg.StrOpt(
        'mysql_sql_mode',
        default='TRADITIONAL',
        help="""
The SQL mode of every connection. Applies to MySQL and MariaDB only.

The value overrides the SQL mode of the server. To use the mode of
the server, set the option to an empty value (`mysql_sql_mode=`).
In both cases Placement adds STRICT_ALL_TABLES, so that the server
does not truncate values, and removes EMPTY_STRING_IS_NULL.
""",
    ),
    cfg.IntOpt(
        'mysql_wsrep_sync_wait',
        min=0,
        max=15,
        help="""
The value of the MySQL variable `wsrep_sync_wait` for every
connection. It is a bit mask of the statements before which a node
of a Galera cluster waits until it has applied the transactions that
other nodes committed. Applies to Galera only.

If the option is not set, Placement uses 1 if the server is a node
of a cluster (`wsrep_on`), and does not set the variable otherwise.
With 1 every read waits, so that a response includes all writes that
other nodes have acknowledged. If the option is set, Placement sets
the variable on every server. With 0 reads are faster but can return
outdated data.
""",
    ),
    cfg.IntOpt(
        'connection_recycle_time',
        default=3600,
        help='The number of seconds after which a connection is replaced when it is next '
        'used. The value should be smaller than the time after which the server closes '
        'idle connections.',
    ),
    cfg.IntOpt(
        'max_pool_size',
        help='The number of database connections that a process keeps open. 0 means no '
        'limit. If the option is not set, the default of SQLAlchemy applies, which is 5.',
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        help='The number of times that a starting process tries again to connect to the '
        'database before it fails. -1 means no limit.',
    ),
    cfg.IntOpt(
        'retry_interval',
        default=10,
        help='The number of seconds between attempts to connect to the database at start.',
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
        help='The amount of SQL debugging information in the log: 0 for none, 100 for all.',
    ),
    cfg.BoolOpt(
        'connection_trace',
        default=False,
        help='Whether each SQL statement contains its position in the Python code as a '
        'comment, for example for the log of the database server.',
    ),
    cfg.IntOpt(
        'pool_timeout',
        help='The number of seconds for which a request waits for a free connection if all '
        'connections are in use. After that time the response is 503 Service Unavailable. '
        'If the option is not set, the default of SQLAlchemy applies, which is 30.',
    ),
]

# Not an option of oslo.db.
SYNC_OPTS = [
    cfg.BoolOpt(
        'sync_on_startup',
        default=False,
        help="""
Whether a starting process upgrades the database schema.

Any number of processes can start at the same time: one of them
upgrades the schema, and the others wait for it. If false, run
`placement-manage db sync` before starting the service.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[placement_database]` on `conf`."""
    conf.register_group(copy.deepcopy(GROUP))  # values that a user sets are stored in the group
    conf.register_opts(OPTS + SYNC_OPTS, group=GROUP)
