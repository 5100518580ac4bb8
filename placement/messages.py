"""Messages of errors for operators: one line that names the remedy and contains no secret.

The service uses them when it does not start, and the commands use them when they fail. `LogRecord`
keeps the lines of the log in the same form.
"""

from collections.abc import Callable
import logging
import re
from typing import Any

from alembic.util import CommandError
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log
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
_CHECK_CONNECTION = 'correct [placement_database] connection'


class LogRecord(logging.LogRecord):
    """A record of the log without the summary that oslo.log appends to lines of Placement.

    oslo.log appends the first line of the active exception to each line at WARNING or above. The
    lines of Placement contain the reason already. The summary remains in lines of libraries, and in
    lines with a traceback.
    """

    @property
    def error_summary(self) -> str:
        """What oslo.log appends to the line."""
        summary: str = self.__dict__.get('error_summary', '')
        return summary

    @error_summary.setter
    def error_summary(self, text: str) -> None:
        # A hyphen stands for no summary, if the format of the operator contains the summary.
        appended = text == '-' or self.exc_info or self.name.partition('.')[0] != 'placement'
        self.__dict__['error_summary'] = text if appended else ''


def sentence(error: BaseException) -> str:
    """Return the message of an error in one line, with the remedy and without secrets.

    The message contains no SQL statement and no parameter. It contains the URL of the database
    only without the password.
    """
    text = ' '.join(_describe(error).split())
    for url in engine.configure.urls:
        for secret in database_url.secrets(url):
            text = re.sub(rf'(?<!\w){re.escape(secret)}(?!\w)', '***', text)
    return text


def _describe(error: BaseException) -> str:
    for kinds, describe in _DESCRIPTIONS:
        if isinstance(error, kinds):
            return describe(error)
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


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _missing_option(error: cfg.RequiredOptError) -> str:
    group = error.group.name if isinstance(error.group, cfg.OptGroup) else error.group
    files = ', '.join(getattr(error, 'files', ())) or 'none'
    return (
        f'[{group or "DEFAULT"}] {error.opt_name} has no value. Set it in placement.conf '
        f'(configuration files: {files}).'
    )


def _missing_files(error: cfg.ConfigFilesNotFoundError) -> str:
    return (
        f'The configuration file {", ".join(error.config_files)} does not exist. Create it, or '
        f'correct {sources.CONFIG_DIR} or --config-file.'
    )


def _unreadable_files(error: cfg.ConfigFilesPermissionDeniedError) -> str:
    return (
        f'The configuration file {", ".join(error.config_files)} is not readable. Allow this '
        'user to read it.'
    )


def _missing_directory(error: cfg.ConfigDirNotFoundError) -> str:
    return (
        f'The configuration directory {error.config_dir} does not exist. Create it, or correct '
        '--config-dir.'
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
    name = str(error).rpartition(':')[2].replace('.', '+')
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


def _invalid_url(_error: sa.exc.ArgumentError) -> str:
    # The message of SQLAlchemy can contain the URL with the password.
    return 'A URL in [placement_database] is not a valid database URL. Correct the URL.'


def _not_in_utf_8(_error: db_exc.DBInvalidUnicodeParameter) -> str:
    return 'A name contains bytes that are not UTF-8. Correct the name.'


def _operating_system(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return (
        f'The file {error.filename} cannot be used: {error.strerror}. Correct its path or its '
        'permissions.'
    )


def _log_configuration(error: log.LogConfigError) -> str:
    return (
        f'The file {error.log_config} ([DEFAULT] log_config_append) cannot be used: '
        f'{error.err_msg}. Correct its path, its permissions, or its contents.'
    )


def _database(error: Exception) -> str:
    url = ' or '.join(filter(None, map(database_url.masked, engine.configure.urls)))
    database = f'The database {url}' if url else 'The database'
    reason = failures.reason(error).rstrip('.?')
    if privileges := failures.missing_schema_privileges(error):
        return (
            f'{database} does not allow this user to migrate the schema: {reason}. Grant '
            f'{privileges}, or run `placement-manage db sync` as a user with these privileges.'
        )
    if failures.is_access_denied(error):
        return (
            f'{database} denies access: {reason}. Grant the privileges to the user, or '
            f'{_CHECK_CONNECTION}.'
        )
    if limit := failures.connection_limit(error):
        return (
            f'{database} accepts no more connections: {reason}. Increase {limit}, or decrease '
            f'max_pool_size and max_overflow in [placement_database]: {_connections()}.'
        )
    if failures.is_unverified(error):
        for unreadable in filter(None, map(database_url.unreadable_file, engine.configure.urls)):
            return f'{unreadable}. Correct its path or its permissions.'
        return (
            f'{database} cannot be verified with TLS: {reason}. Correct the certificate of the '
            f'server, or {_CHECK_CONNECTION}.'
        )
    if failures.is_unknown_database(error):
        return f'{database} does not exist: {reason}. Create it, or {_CHECK_CONNECTION}.'
    if text := _file_or_schema(error, database, reason):
        return text
    if failures.is_unavailable(error) or isinstance(error, sa.exc.OperationalError):
        return (
            f'{database} is not reachable: {reason}. Start the database server, or '
            f'{_CHECK_CONNECTION}.'
        )
    return f'{database} failed: {reason}.'


def _file_or_schema(error: Exception, database: str, reason: str) -> str | None:
    """Describe an error of the file of an SQLite database, or of the schema of any database."""
    if failures.is_file_inaccessible(error):
        return (
            f'{database} cannot be opened: {reason}. Create its directory and allow this user to '
            f'write to it, or {_CHECK_CONNECTION}.'
        )
    if failures.is_locked(error):
        return f'{database} is in use: {reason}. Try again when the other process has finished.'
    if failures.is_new_schema(error):
        return (
            f'{database} has a table that its migration would create: {reason}. Store the revision '
            f'of its schema with `placement-manage db stamp`, or {_CHECK_CONNECTION}.'
        )
    if failures.is_old_schema(error):
        return (
            f'{database} lacks a table or a column: {reason}. Run `placement-manage db sync`, or '
            f'{_CHECK_CONNECTION}.'
        )
    return None


def _connections() -> str:
    count = engine.configure.connections
    most = 'any number of connections' if count is None else f'up to {count} connections'
    return (
        f'each process of the service opens {most}. `placement-status preflight --machines N '
        '--processes N` adds them up'
    )


# The first entry whose classes include the class of an error describes the error.
_Kinds = type[BaseException] | tuple[type[BaseException], ...]
_DESCRIPTIONS: tuple[tuple[_Kinds, Callable[[Any], str]], ...] = (
    (exception.PlacementException, _own),
    (cfg.RequiredOptError, _missing_option),
    (cfg.ConfigFilesNotFoundError, _missing_files),
    (cfg.ConfigFilesPermissionDeniedError, _unreadable_files),
    (cfg.ConfigDirNotFoundError, _missing_directory),
    (cfg.ConfigFileParseError, _malformed_file),
    (cfg.ConfigSourceValueError, _invalid_value),
    (sa.exc.NoSuchModuleError, _unknown_driver),
    (sa.exc.ArgumentError, _invalid_url),
    (ImportError, _missing_library),
    (db_exc.DBInvalidUnicodeParameter, _not_in_utf_8),
    ((db_exc.DBError, sa.exc.SQLAlchemyError), _database),
    (OSError, _operating_system),
    (log.LogConfigError, _log_configuration),
    ((cfg.Error, CommandError, RuntimeError, ValueError), _text),
)
