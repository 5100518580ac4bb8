"""Texts for operators: the messages of errors, and the form of the lines of the log.

A message of an error is one line that names the remedy and contains no secret. The service uses the
messages when it does not start, and the commands use them when they fail.
"""

from collections.abc import Callable, Iterable
import itertools
import logging
import re
from typing import Any

from alembic.util import CommandError
from oslo_config import cfg
from oslo_context import context
from oslo_db import exception as db_exc
from oslo_log import formatters, handlers, log
import sqlalchemy as sa

from placement import exception
from placement.conf import database_url, sources
from placement.db import engine, failures

# The extra of the distribution that installs a library.
_EXTRAS = {
    'MySQLdb': 'mysqlclient',
    'jinja2': 'tools',
    'prometheus_client': 'metrics',
    'psycopg': 'postgresql',
    'pymysql': 'mysql',
    'waitress': 'serve',
    'werkzeug': 'profiler',
}
# Drivers that a release of SQLAlchemy uses if the URL names no driver, and the beginning of a URL
# with the recommended driver.
_DEFAULT_DRIVERS = {'MySQLdb': 'mysql+pymysql://', 'psycopg2': 'postgresql+psycopg://'}
# The libraries that read `[keystone_authtoken]`. Their exceptions do not name this group.
_AUTHENTICATION_LIBRARIES = ('keystoneauth1.', 'keystonemiddleware.')
# The message of oslo.config for an option of a library. `placement.conf.validate` describes the
# options of the service.
_VALUE_OF_A_LIBRARY = re.compile(
    r"Value for option (\S+) from LocationInfo\(.*detail='(.*)'\) is not valid: (.*)", re.DOTALL
)
# With these parameters in a URL, PyMySQL does not use `ssl_ca`.
_DISCARD_CA = ('ssl_verify_cert', 'ssl_verify_identity')
# The message of oslo.log for `use_journal`.
_NO_JOURNAL = 'Systemd bindings do not exist'


def sentence(error: BaseException) -> str:
    """Return the message of an error in one line, with the remedy and without secrets.

    The message contains no SQL statement and no parameter. It contains the URL of the database
    only without the password.
    """
    secrets = itertools.chain.from_iterable(map(database_url.secrets, engine.configure.urls))
    return masked(' '.join(_describe(error).split()), secrets)


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return a text with `***` in place of each secret, unless the secret is a part of a word."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = re.sub(rf'(?<!\w){re.escape(secret)}(?!\w)', '***', text)
    return text


def certificate_remedy(urls: Iterable[str | sa.URL]) -> str:
    """Return what to do if a driver refuses the certificate of a server.

    :param urls: the URLs of the database
    """
    for url in map(sa.make_url, urls):
        discard = [name for name in _DISCARD_CA if name in url.query]
        if discard and 'ssl_ca' in url.query and url.drivername == 'mysql+pymysql':
            return (
                f'Remove {" and ".join(discard)} from the URL, because PyMySQL then does not use '
                'ssl_ca, which is sufficient to verify the server'
            )
    return 'Correct the certificate of the server'


def _describe(error: BaseException) -> str:
    for kinds, describe in _DESCRIPTIONS:
        if isinstance(error, kinds):
            return describe(error) if callable(describe) else _filled(describe, error)
    if type(error).__module__.startswith(_AUTHENTICATION_LIBRARIES):
        return f'The options in [keystone_authtoken] are not valid: {error}. Correct them.'
    return f'{type(error).__name__}: {error}'


def _own(error: exception.PlacementException) -> str:
    cause = error.__cause__
    if isinstance(cause, exception.UnsuitableDatabase):
        return str(cause)
    if isinstance(error, exception.DatabaseUnavailable) and isinstance(cause, Exception):
        return _database(cause)
    return str(error)


def _filled(template: str, error: BaseException) -> str:
    """Return a template with the attributes of an error; lists are separated by commas."""
    fields = vars(error).items()
    return template.format(
        **{name: ', '.join(value) if isinstance(value, list) else value for name, value in fields}
    )


def _text(error: BaseException) -> str:
    if str(error) == _NO_JOURNAL:
        return (
            '[DEFAULT] use_journal is true, but the Python library systemd is not installed. Run '
            '`pip install systemd-python`, or remove the option.'
        )
    return str(error) or type(error).__name__


def _missing_option(error: cfg.RequiredOptError) -> str:
    group = error.group.name if isinstance(error.group, cfg.OptGroup) else error.group
    files = ', '.join(getattr(error, 'files', ())) or 'none'
    return (
        f'[{group or "DEFAULT"}] {error.opt_name} has no value. Set it in placement.conf '
        f'(configuration files: {files}).'
    )


def _malformed_file(error: cfg.ConfigFileParseError) -> str:
    cause = error.__context__
    if isinstance(cause, UnicodeDecodeError):
        return f'The configuration file {error.config_file} is not in UTF-8. Correct it.'
    if isinstance(cause, cfg.ParseError):
        # The message of oslo.config contains the line, which can contain a password.
        return (
            f'The configuration file {error.config_file} is malformed in line {cause.lineno}: '
            f'{cause.msg}. Correct this line.'
        )
    return f'The configuration file {error.config_file} is malformed. Correct it.'


def _invalid_value(error: cfg.ConfigSourceValueError) -> str:
    match = _VALUE_OF_A_LIBRARY.fullmatch(str(error))
    if match is None:
        return str(error)
    name, source, reason = match.groups()
    return f'The option {name} in {source} is not valid: {reason}. Correct the value.'


def _unknown_driver(error: sa.exc.NoSuchModuleError) -> str:
    kind, _, name = str(error).rpartition(':')
    name = name.replace('.', '+')
    if kind.endswith('sqlalchemy.plugins'):
        return (
            f'A URL in [placement_database] names the SQLAlchemy plugin {name}, which is not '
            f'installed. Install it, or remove plugin={name} from the URL.'
        )
    return (
        f'[placement_database] connection names the unknown database driver {name}. Use '
        'mysql+pymysql, postgresql+psycopg, or sqlite.'
    )


def _missing_library(error: ImportError) -> str:
    name = (error.name or '').partition('.')[0]
    if not name:
        return str(error)
    extra = _EXTRAS.get(name)
    package = f"'openstack-placement[{extra}]'" if extra else name
    remedy = f'Run `pip install {package}`'
    if url := _DEFAULT_DRIVERS.get(name):
        remedy = f'{remedy}, or let the URL in [placement_database] begin with {url}'
    return f'The Python library {name} is not installed or is damaged. {remedy}.'


def _operating_system(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return (
        f'The file {error.filename} cannot be used: {error.strerror}. Correct its path or its '
        'permissions.'
    )


def _database(error: Exception) -> str:
    urls = ' or '.join(filter(None, map(database_url.masked, engine.configure.urls)))
    count = engine.configure.connections
    found, template = next((found, text) for is_met, text in _DATABASE if (found := is_met(error)))
    return template.format(
        database=f'The database {urls}' if urls else 'The database',
        reason=failures.reason(error).rstrip('.?'),
        found=found,
        connections='any number of connections' if count is None else f'up to {count} connections',
        correct='correct [placement_database] connection',
    )


def _unreadable_file(error: Exception) -> str | None:
    """Describe the file for TLS that prevents a connection."""
    if not failures.is_unverified(error):
        return None
    return next(filter(None, map(database_url.unreadable_file, engine.configure.urls)), None)


def _certificate_remedy(error: Exception) -> str | None:
    """Return what to do if the certificate of the server is refused."""
    return certificate_remedy(engine.configure.urls) if failures.is_unverified(error) else None


def _is_unreachable(error: Exception) -> bool:
    return failures.is_unavailable(error) or isinstance(error, sa.exc.OperationalError)


# The first entry whose condition is true describes an error of a database. `{found}` is the result
# of the condition.
_DATABASE: tuple[tuple[Callable[[Exception], Any], str], ...] = (
    (
        failures.missing_schema_privileges,
        '{database} does not allow this user to migrate the schema: {reason}. Grant {found}, or '
        'run `placement-manage db sync` as a user with these privileges.',
    ),
    (
        failures.is_access_denied,
        '{database} denies access: {reason}. Grant the privileges to the user, or {correct}.',
    ),
    (
        failures.connection_limit,
        '{database} accepts no more connections: {reason}. Increase {found}, or decrease '
        'max_pool_size and max_overflow in [placement_database]: each process of the service opens '
        '{connections}. `placement-status preflight --machines N --processes N --threads N` adds '
        'them up.',
    ),
    (_unreadable_file, '{found}. Correct its path or its permissions.'),
    (
        _certificate_remedy,
        '{database} cannot be verified with TLS: {reason}. {found}, or {correct}.',
    ),
    (
        failures.is_unknown_database,
        '{database} does not exist: {reason}. Create it, or {correct}.',
    ),
    (
        failures.is_file_inaccessible,
        '{database} cannot be opened: {reason}. Create its directory and allow this user to write '
        'to it, or {correct}.',
    ),
    (
        failures.is_locked,
        '{database} is in use: {reason}. Try again when the other process has finished.',
    ),
    (
        failures.is_new_schema,
        '{database} has a table that its migration would create: {reason}. Store the revision of '
        'its schema with `placement-manage db stamp`, or {correct}.',
    ),
    (
        failures.is_old_schema,
        '{database} lacks a table or a column: {reason}. Run `placement-manage db sync`, or '
        '{correct}.',
    ),
    (
        _is_unreachable,
        '{database} is not reachable: {reason}. Start the database server, or {correct}.',
    ),
    (bool, '{database} failed: {reason}.'),
)
# The first entry whose classes include the class of an error describes the error: a function, or a
# template with attributes of the error. The templates for URLs and for malformed lines contain no
# message of a library, which can contain a password.
_Kinds = type[BaseException] | tuple[type[BaseException], ...]
_DESCRIPTIONS: tuple[tuple[_Kinds, Callable[[Any], str] | str], ...] = (
    (exception.PlacementException, _own),
    (cfg.RequiredOptError, _missing_option),
    (
        cfg.ConfigFilesNotFoundError,
        'The configuration file {config_files} does not exist. Create it, or correct '
        f'{sources.CONFIG_DIR} or --config-file.',
    ),
    (
        cfg.ConfigFilesPermissionDeniedError,
        'The configuration file {config_files} is not readable. Allow this user to read it.',
    ),
    (
        cfg.ConfigDirNotFoundError,
        'The configuration directory {config_dir} does not exist. Create it, or correct '
        '--config-dir.',
    ),
    (cfg.ConfigFileParseError, _malformed_file),
    (cfg.ConfigSourceValueError, _invalid_value),
    (sa.exc.NoSuchModuleError, _unknown_driver),
    (
        sa.exc.ArgumentError,
        'A URL in [placement_database] is not a valid database URL. Correct the URL.',
    ),
    (ImportError, _missing_library),
    (
        db_exc.DBInvalidUnicodeParameter,
        'A name contains bytes that are not UTF-8. Correct the name.',
    ),
    ((db_exc.DBError, sa.exc.SQLAlchemyError), _database),
    (OSError, _operating_system),
    (
        log.LogConfigError,
        'The file {log_config} ([DEFAULT] log_config_append) cannot be used: {err_msg}. Correct '
        'its path, its permissions, or its contents.',
    ),
    ((cfg.Error, CommandError, RuntimeError, ValueError), _text),
)

# The lines of the log ------------------------------------------------------------

# The control characters: C0 except tab and newline, DEL, and C1.
_CONTROLS = re.compile(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]')
# With the option `log_color`, log lines contain escape sequences for colors.
_CONTROLS_BUT_COLORS = re.compile(rf'(?!\x1b\[[0-9;]*m){_CONTROLS.pattern}')


def set_up_log(config: cfg.ConfigOpts) -> None:
    """Set up oslo.log, and the form of the lines that its handlers write.

    :raises ValueError: the value of an option is invalid
    """
    logging.captureWarnings(True)
    try:
        log.setup(config, 'placement')
    except cfg.Error:
        raise
    except ValueError as error:
        # The reason of logging is an unknown level, and does not name the option.
        raise ValueError(
            f'[DEFAULT] default_log_levels is not valid: {error}. Correct the value.'
        ) from error
    # The file of `log_config_append` can declare handlers for loggers of Placement.
    loggers = filter(_is_own, logging.getLogger().manager.loggerDict)
    for logger in map(logging.getLogger, (None, *loggers)):
        for handler in logger.handlers:
            handler.setFormatter(LineFormatter(handler, config))


def _is_own(name: str) -> bool:
    """Return whether a logger belongs to Placement."""
    return name.partition('.')[0] == 'placement'


class LineFormatter(logging.Formatter):
    r"""Formats the records of a handler with the formatter that oslo.log chose for the handler.

    Control characters are escaped, for example as `\u001b`. The context of a log record, library
    messages and tracebacks can contain text from clients. A terminal that displays the log must not
    interpret control characters in such text. The escaped form is valid in JSON, too.

    oslo.log appends the first line of the active exception to each line at WARNING or above. The
    lines of Placement contain the reason already, so they have no such summary, unless they have a
    traceback.
    """

    def __init__(self, handler: logging.Handler, config: cfg.ConfigOpts) -> None:
        super().__init__()
        self._inner = handler.formatter or logging.Formatter()
        colored = 'log_color' in config and config.log_color
        self._controls = _CONTROLS_BUT_COLORS if colored else _CONTROLS
        self._appends_summary = isinstance(self._inner, formatters.ContextFormatter)
        # The handler for the journal reads the fields that oslo.log adds to a record.
        self._is_simple = type(self._inner) is formatters.ContextFormatter and not isinstance(
            handler, handlers.OSJournalHandler
        )
        self._line = config.logging_context_format_string
        self._identity = config.logging_user_identity_format

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted record with escaped control characters."""
        text = self._text(record)
        # The Fluentd formatter of oslo.log returns a dictionary instead of text.
        return self._controls.sub(_escaped, text) if isinstance(text, str) else text

    def _text(self, record: logging.LogRecord) -> str:
        if record.exc_info or not self._appends_summary or not _is_own(record.name):
            return self._inner.format(record)
        try:
            return self._line_of_request(record)
        except (KeyError, TypeError, ValueError):
            # oslo.log does not append an active exception of these classes.
            return self._inner.format(record)

    def _line_of_request(self, record: logging.LogRecord) -> str:
        """Return the line of a request, with the same text as oslo.log.

        PERF: oslo.log formats a time that most formats do not contain, and sets 25 attributes.

        :raises KeyError, TypeError, ValueError: only oslo.log can format the line: it is not for a
            request, it has the suffix of lines at DEBUG, or the format has other fields
        """
        caller = context.get_current()
        if caller is None or not self._is_simple or record.levelno == logging.DEBUG:
            raise ValueError
        values = caller.get_logging_values()
        identity = self._identity % {name: value or '-' for name, value in values.items()}
        fields = {**values, 'user_identity': identity, 'instance': ''}
        form = logging.Formatter(self._line, self._inner.datefmt, validate=False, defaults=fields)
        return form.format(record)


def _escaped(match: re.Match[str]) -> str:
    return f'\\u{ord(match[0]):04x}'
