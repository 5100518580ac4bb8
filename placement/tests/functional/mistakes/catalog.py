"""The mistakes: a configuration, and the text that the line of the report contains."""

from dataclasses import dataclass, field
import itertools

from placement.tests.functional.programs import MANAGE, SERVICE, STATUS

PASSWORD = 's3cret-W0rd'
ALL = (MANAGE, STATUS, SERVICE)
COMMANDS = (MANAGE, STATUS)

# Every command of `placement-manage` and of `placement-status`, with arguments.
COMMAND_LINES = (
    (MANAGE, 'db sync'),
    (MANAGE, 'db version'),
    (MANAGE, 'db stamp head'),
    (MANAGE, 'db online_data_migrations'),
    (MANAGE, 'explain resources=VCPU:1'),
    (MANAGE, 'headroom resources=VCPU:1'),
    (MANAGE, 'drain --each'),
    (MANAGE, 'audit'),
    (
        MANAGE,
        'rename-uuid 00000000-0000-0000-0000-000000000001 00000000-0000-0000-0000-000000000002',
    ),
    (MANAGE, 'export {folder}/export'),
    (MANAGE, 'import {folder}/placement.conf'),
    (MANAGE, 'report {folder}/report'),
    (MANAGE, 'exporter --once'),
    (STATUS, 'upgrade check'),
    (STATUS, 'preflight'),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A mistake of an operator.

    :ivar report: the line that a program prints; `...` stands for any text
    :ivar configuration: the text of placement.conf; None for no file. `{folder}` is an empty
        directory, and `{port}` is a port without a server; `{migrated}`, `{older}`, and `{newer}`
        are URLs of databases with the current schema, an older one, and a newer one; `{stamped}` is
        that of a database whose schema is newer than its revision
    :ivar programs: the programs that fail
    :ivar action: the action of `placement-manage db`
    :ivar options: options of the commands
    :ivar files: names and texts of other files in the directory of the configuration
    :ivar missing: libraries that are not installed
    :ivar environment: environment variables; their values contain the same names in braces
    :ivar secrets: the texts that no program may print
    """

    report: str
    configuration: str | None
    programs: tuple[str, ...] = ALL
    action: tuple[str, ...] = ('version',)
    options: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = (PASSWORD,)


def database(url: str) -> str:
    """Return a configuration for a database, without authentication."""
    return f'[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n'


def keystone(text: str) -> str:
    """Return a configuration with authentication."""
    return f'[placement_database]\nconnection = {{migrated}}\n[keystone_authtoken]\n{text}'


MIGRATED = database('{migrated}')
MYSQL = f'mysql+pymysql://placement:{PASSWORD}@127.0.0.1:{{port}}/placement'
POSTGRESQL = f'postgresql+psycopg://placement:{PASSWORD}@127.0.0.1:{{port}}/placement'
UNNAMED = MYSQL.removesuffix('/placement')
LOG_SETUP = f'{MIGRATED}[DEFAULT]\nlog_config_append = {{folder}}/log.ini\n'
CREDENTIALS = (
    'auth_type = password\nauth_url = http://127.0.0.1:1\nusername = placement\n'
    f'password = {PASSWORD}\n'
)
UNREACHABLE = (
    'The database ... is not reachable: .... Start the database server, or correct '
    '[placement_database] connection.'
)
UNKNOWN_DRIVER = (
    '[placement_database] connection names the unknown database driver .... Use mysql+pymysql, '
    'postgresql+psycopg, or sqlite.'
)
DEFAULT_DRIVER = (
    'The Python library ... is not installed or is damaged. Run `pip install ...`, or let the URL '
    'in [placement_database] begin with ....'
)
MISSING_LIBRARY = 'The Python library ... is not installed or is damaged. Run `pip install ...`.'
INVALID_URL = (
    '[placement_database] ... is not a database URL. Write it in the form '
    'mysql+pymysql://USER:PASSWORD@HOST/DATABASE, and percent-encode special characters of the '
    'password (%40 for @, %3A for :, %2F for /, %23 for #).'
)
NO_NAME = (
    '[placement_database] ... names no database. Add its name to the end of the URL: '
    'mysql+pymysql://USER:PASSWORD@HOST/DATABASE.'
)
UNREADABLE = (
    'The file ... (... in [placement_database]) cannot be read: .... Correct its path or its '
    'permissions.'
)
DOLLAR = (
    'The value of [...] ... in ... contains $ and not the name of an option after it. Write $$ for '
    'a dollar sign.'
)
NO_VALUE = '[...] ... has no value. Set it in placement.conf (configuration files: ...).'
INVALID_VALUE = '[...] ... is not valid: .... Correct the value.'
MALFORMED_FILE = 'The configuration file ... is malformed in line ...: .... Correct this line.'
INVALID_KEYSTONE = 'The options in [keystone_authtoken] are not valid: .... Correct them.'
MALFORMED_POLICY = (
    'The policy file ... is not usable: .... Correct it; placement-status preflight checks it.'
)

MALFORMED_LOG_SETUP = (
    'The file ... ([DEFAULT] log_config_append) cannot be used: .... Correct its path, its '
    'permissions, or its contents.'
)
OLD_SCHEMA = (
    'The schema of the database is at revision ..., but this release needs revision .... Run '
    '`placement-manage db sync`, or set [placement_database] sync_on_startup to true.'
)

# Mistakes in placement.conf that all programs report: the configurations by report and name.
_IN_ALL: dict[str, dict[str, str]] = {
    UNREACHABLE: {
        'MySQL server unreachable': database(MYSQL),
        'PostgreSQL server unreachable': database(POSTGRESQL),
    },
    UNREADABLE: {
        'missing CA of the database': database(f'{MYSQL}?ssl_ca=/nonexistent'),
        'missing CA in the parameters': (
            f'{database(MYSQL)}connection_parameters = ssl_ca=/nonexistent\n'
        ),
    },
    NO_NAME: {
        'no name of a database': database(UNNAMED),
        'no name of a database, and a slash': database(f'{UNNAMED}/?charset=utf8mb4'),
        'no name of the database of the replica': f'{MIGRATED}slave_connection = {UNNAMED}\n',
    },
    UNKNOWN_DRIVER: {
        'unknown driver': database(f'mysql+nosuch://placement:{PASSWORD}@127.0.0.1/placement'),
        'unsupported system': database(f'oracle://placement:{PASSWORD}@127.0.0.1/placement'),
    },
    INVALID_URL: {
        'malformed URL': database(f'placement:{PASSWORD}@127.0.0.1'),
        'malformed port': database(f'mysql+pymysql://placement:x@127.0.0.1:{PASSWORD}/placement'),
        'malformed URL of the replica': f'{MIGRATED}slave_connection = {PASSWORD}\n',
    },
    NO_VALUE: {'no connection': '[api]\nauth_strategy = noauth2\n'},
    MALFORMED_FILE: {'malformed configuration file': f'[api]\n{PASSWORD}\n'},
    INVALID_VALUE: {
        'unknown value': f'{MIGRATED}[api]\nauth_strategy = none\n',
        'text instead of a number': f'{MIGRATED}pool_timeout = soon\n',
        'invalid option of the log': f'{MIGRATED}[DEFAULT]\ndebug = maybe\n',
        'unknown level of the log': f'{MIGRATED}[DEFAULT]\ndefault_log_levels = a=x\n',
    },
    'A URL in [placement_database] names the SQLAlchemy plugin ..., which is not installed. '
    'Install it, or remove plugin=... from the URL.': {
        'plugin not installed': database(f'{MYSQL}?plugin=dbcounter'),
    },
    'The file ... cannot be used: .... Correct its path or its permissions.': {
        'no directory for the log file': f'{MIGRATED}[DEFAULT]\nlog_file = {{folder}}/no/log\n',
    },
    MALFORMED_LOG_SETUP: {'no file with the setup of the log': LOG_SETUP},
    'The database ... cannot be opened: .... Create its directory and allow this user to write to '
    'it, or correct [placement_database] connection.': {
        'no directory for SQLite': database('sqlite:///{folder}/missing/placement.db'),
    },
}
# The same for mistakes that only the service reports.
_IN_SERVICE: dict[str, dict[str, str]] = {
    'The option ... in ... is not valid: .... Correct the value.': {
        'invalid option of a library': (
            f'{MIGRATED}[oslo_middleware]\nmax_request_body_size = many\n'
        ),
    },
    OLD_SCHEMA: {
        'schema of an older release': database('{older}'),
        'no tables': database('sqlite:///{folder}/empty.db'),
    },
    NO_VALUE: {'no auth_type': keystone('')},
    INVALID_KEYSTONE: {
        'unknown auth_type': keystone('auth_type = x\n'),
        'no auth_url': keystone('auth_type = password\n'),
    },
    '[keystone_authtoken] memcached_servers contains ..., which is not the address of a server. '
    'Write HOST:PORT, or the absolute path of a Unix socket.': {
        'invalid address of memcached': keystone(
            f'{CREDENTIALS}memcached_servers = 127.0.0.1:memcached\n'
        ),
    },
    'A file or a cipher in [keystone_authtoken] memcache_tls_* cannot be used: .... Correct '
    'memcache_tls_cafile, memcache_tls_certfile, memcache_tls_keyfile, or '
    'memcache_tls_allowed_ciphers.': {
        'missing CA of memcached': keystone(
            f'{CREDENTIALS}memcached_servers = 127.0.0.1\nmemcache_tls_enabled = true\n'
            'memcache_tls_cafile = /nonexistent\n'
        ),
    },
}

MISTAKES: dict[str, Mistake] = {
    name: Mistake(report=report, configuration=configuration, programs=programs)
    for programs, reports in ((ALL, _IN_ALL), ((SERVICE,), _IN_SERVICE))
    for report, configurations in reports.items()
    for name, configuration in configurations.items()
}
MISTAKES |= {
    f'{library} not installed': Mistake(
        report=report, configuration=database(url), missing=(library,)
    )
    for report, library, url in (
        (MISSING_LIBRARY, 'pymysql', MYSQL),
        (MISSING_LIBRARY, 'psycopg', POSTGRESQL),
        (DEFAULT_DRIVER, 'MySQLdb', MYSQL.replace('+pymysql', '')),
        (DEFAULT_DRIVER, 'psycopg2', POSTGRESQL.replace('+psycopg', '+psycopg2')),
    )
}
MISTAKES |= {
    f'policy file with {text!r}': Mistake(
        report=MALFORMED_POLICY,
        configuration=MIGRATED,
        programs=(SERVICE,),
        files={'policy.yaml': text},
    )
    for text in ('a: b: c\n', '- admin_api\n')
}
MISTAKES |= {
    'missing configuration file': Mistake(
        report='The configuration file ... does not exist. Create it, or correct '
        'OS_PLACEMENT_CONFIG_DIR or --config-file.',
        configuration=None,
    ),
    'missing configuration directory': Mistake(
        report='The configuration directory ... does not exist. Create it, or correct '
        '--config-dir.',
        configuration=MIGRATED,
        programs=COMMANDS,
        options=('--config-dir', '{folder}/missing'),
    ),
    'no bindings of the journal': Mistake(
        report='[DEFAULT] use_journal is true, but the Python library systemd is not installed. '
        'Run `pip install systemd-python`, or remove the option.',
        configuration=f'{MIGRATED}[DEFAULT]\nuse_journal = true\n',
        missing=('systemd',),
    ),
    'malformed file with the setup of the log': Mistake(
        report=MALFORMED_LOG_SETUP,
        configuration=LOG_SETUP,
        files={'log.ini': '[loggers]\n'},
    ),
    'no tables to check': Mistake(
        report='The database ... lacks a table or a column: .... Run `placement-manage db sync`, '
        'or correct [placement_database] connection.',
        configuration=database('sqlite:///{folder}/empty.db'),
        programs=(STATUS,),
    ),
    **{
        name: Mistake(report=report, configuration=configuration, programs=(MANAGE,), action=action)
        for name, configuration, action, report in (
            (
                'schema of a newer release',
                database('{newer}'),
                ('sync',),
                'The schema of the database is at revision ..., which this release does not know, '
                'so it cannot upgrade the schema. Use the release that upgraded the database, or a '
                'newer one.',
            ),
            (
                'schema that is newer than its revision',
                database('{stamped}'),
                ('sync',),
                'The database ... has a table that its migration would create: .... Store the '
                'revision of its schema with `placement-manage db stamp`, or correct '
                '[placement_database] connection.',
            ),
            (
                'unknown revision',
                MIGRATED,
                ('stamp', 'nonsense'),
                'This release has no schema revision .... Use head, or one of ....',
            ),
        )
    },
}

# The parts of a password in which special characters are not percent-encoded.
PARTS = ('h3adPart', 'm1ddle', 't4ilPart')
# Such passwords. In each of them, SQLAlchemy takes a part of the password for something else, or
# oslo.config searches an option.
DIVIDED = tuple(
    separators.join(PARTS)
    for separators in ('@', '@/', '#@', '@?', ':@', '@:', '/@', '?@', '@[', '@#', '@=')
)
REFERRING = tuple(separator.join(PARTS) for separator in ('$', '@$', '/$', '$$$', '.$'))


def _unencoded_passwords() -> dict[str, Mistake]:
    """Return mistakes with special characters in passwords.

    The passwords are in the URL of the database or of its replica, for both database systems, in
    the file or in the environment.
    """
    mistakes = {}
    places = itertools.cycle(
        itertools.product(
            ('connection', 'slave_connection'),
            ('mysql+pymysql', 'postgresql+psycopg'),
            (False, True),
        )
    )
    passwords = [(text, INVALID_URL) for text in DIVIDED] + [(text, DOLLAR) for text in REFERRING]
    for (password, report), (option, driver, by_variable) in zip(passwords, places, strict=False):
        url = f'{driver}://placement:{password}@127.0.0.1:{{port}}/placement'
        variable = f'OS_PLACEMENT_DATABASE__{option.upper()}'
        mistakes[f'password {password} in {option}'] = Mistake(
            report=report,
            configuration=MIGRATED if by_variable else f'{MIGRATED}{option} = {url}\n',
            environment={variable: url} if by_variable else {},
            secrets=PARTS,
        )
    return mistakes


MISTAKES |= _unencoded_passwords()
MISTAKES |= {
    f'$ in {option}{" of the environment" * by_variable}': Mistake(
        report=DOLLAR,
        configuration=keystone(CREDENTIALS + f'{option} = {value}\n' * (not by_variable)),
        environment={f'OS_KEYSTONE_AUTHTOKEN__{option.upper()}': value} if by_variable else {},
        programs=(SERVICE,),
        secrets=PARTS,
    )
    for value in ('$'.join(PARTS),)
    for option in ('password', 'memcache_secret_key', 'auth_url', 'memcached_servers')
    for by_variable in (False, True)
}


def server_mistakes(
    wrong_password: str, unknown_database: str, unverified: str, limited: str, unprivileged: str
) -> dict[str, Mistake]:
    """Return the mistakes that need a database server; the arguments are URLs."""
    return {
        'unverified server': Mistake(
            report='The database ... cannot be verified with TLS: .... Correct the certificate of '
            'the server, or correct [placement_database] connection.',
            configuration=database(unverified),
        ),
        'wrong password': Mistake(
            report='The database ... denies access: .... Grant the privileges to the user, or '
            'correct [placement_database] connection.',
            configuration=database(wrong_password),
        ),
        'too many connections': Mistake(
            report='The database ... accepts no more connections: .... Increase ..., or decrease '
            'max_pool_size and max_overflow in [placement_database]: each process of the service '
            'opens up to ... connections. `placement-status preflight --machines N --processes N '
            '--threads N` adds them up.',
            configuration=database(limited),
        ),
        'no privileges for the migration': Mistake(
            report='The database ... does not allow this user to migrate the schema: .... Grant '
            '..., or run `placement-manage db sync` as a user with these privileges.',
            configuration=database(unprivileged),
            programs=(MANAGE,),
            action=('sync',),
        ),
        'no tables and no privileges': Mistake(
            report='The schema of the database is at revision ..., but this release needs revision '
            '..., and the user of the database cannot migrate it, because it lacks .... Grant '
            'these privileges and run `placement-manage db sync`, or run it as a user that has '
            'them.',
            configuration=database(unprivileged),
            programs=(SERVICE,),
        ),
        'unknown database': Mistake(
            report='The database ... does not exist: .... Create it, or correct '
            '[placement_database] connection.',
            configuration=database(unknown_database),
        ),
    }
