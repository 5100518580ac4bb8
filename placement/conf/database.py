"""Options of the database connection.

They mirror those of oslo.db, in a group of their own, because `[database]` may belong to
another service that shares the configuration file. All but `sync_on_startup` are handed
to oslo.db.
"""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'placement_database',
    title='Placement database options',
    help="""
The database in which the service keeps all its state.

SQLite, MySQL, MariaDB (Galera clusters too) and PostgreSQL are
supported.
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

The database has to exist. Its tables are made by `placement-manage
db sync`, or at start with `sync_on_startup`.
""",
    ),
    cfg.StrOpt(
        'connection_parameters',
        default='',
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
        help='Whether SQLite waits until data is on the disk. Without it a power failure '
        'may corrupt the database. Used with SQLite only.',
    ),
    cfg.StrOpt(
        'mysql_sql_mode',
        default='TRADITIONAL',
        help="""
The SQL mode of every connection. Used with MySQL and MariaDB only.

It overrides the mode of the server. Set it to no value to keep
that one (`mysql_sql_mode=`). Placement adds STRICT_ALL_TABLES, so
that no value is cut short, and removes EMPTY_STRING_IS_NULL.
""",
    ),
    cfg.IntOpt(
        'mysql_wsrep_sync_wait',
        min=0,
        max=15,
        help="""
The value of `wsrep_sync_wait` of every connection: for which
statements a node of a Galera cluster first waits until it has
applied what other nodes committed. Used with Galera only.

Unset, the service finds out whether the server is a node of a
cluster (`wsrep_on`), and if it is lets every read wait (1). That is
what makes an answer include what another node has just
acknowledged. A number is handed to the server as it is, whether it
is a node or not; 0 gives faster reads that may be behind.
""",
    ),
    cfg.IntOpt(
        'connection_recycle_time',
        default=3600,
        help='Connections that are older than this number of seconds are replaced by new '
        'ones when they are next used. Keep it below the time after which the server '
        'closes idle connections.',
    ),
    cfg.IntOpt(
        'max_pool_size',
        help='The number of connections to the database that a process keeps open. '
        '0 means no bound. Unset, the default of SQLAlchemy applies, which is 5.',
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        help='How often a process tries to reach the database when it starts, before it '
        'gives up. -1 means that it never gives up.',
    ),
    cfg.IntOpt(
        'retry_interval',
        default=10,
        help='The number of seconds between attempts to reach the database at start.',
    ),
    cfg.IntOpt(
        'max_overflow',
        help='The number of connections that a process may open beyond `max_pool_size` '
        'when all those are in use. Unset, the default of SQLAlchemy applies, which '
        'is 10.',
    ),
    cfg.IntOpt(
        'connection_debug',
        default=0,
        help='How much of the SQL statements is logged: 0 nothing, 100 everything.',
    ),
    cfg.BoolOpt(
        'connection_trace',
        default=False,
        help='Whether the place in the Python code that sends a statement is added to it '
        'as a comment, for the log of the database server.',
    ),
    cfg.IntOpt(
        'pool_timeout',
        help='The number of seconds that a request waits for a free connection when the '
        'pool is exhausted, before it is answered with 503. Unset, the default of '
        'SQLAlchemy applies, which is 30.',
    ),
]

# Not an option of oslo.db.
SYNC_OPTS = [
    cfg.BoolOpt(
        'sync_on_startup',
        default=False,
        help="""
Whether a process that starts brings the database schema up to
date.

Any number of processes may start at the same time: one of them
migrates, the others wait. Without it run `placement-manage db
sync` before the service starts.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[placement_database]` on `conf`."""
    conf.register_group(copy.deepcopy(GROUP))  # a group keeps the values that are set on it
    conf.register_opts(OPTS + SYNC_OPTS, group=GROUP)
