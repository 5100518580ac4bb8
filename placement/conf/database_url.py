"""URLs of databases: validation, and a form without secrets for messages."""

from collections.abc import Iterator
import pathlib
import re

import sqlalchemy as sa

# The dialects that this service supports. The dialect `mariadb` of SQLAlchemy is not among them,
# because oslo.db and this service apply the settings of a connection to the dialect `mysql`.
_DIALECTS = ('mysql', 'postgresql', 'sqlite')

# Parameters of drivers that contain a secret.
_SECRET_PARAMETERS = frozenset(
    {'password', 'passwd', 'passphrase', 'sslpassword', 'ssl_key_password'}
)

# Parameters of drivers that contain the path of a file.
_FILE_PARAMETERS = ('ssl_ca', 'ssl_cert', 'ssl_key', 'sslrootcert', 'sslcert', 'sslkey', 'sslcrl')
# With this value of sslrootcert, libpq uses the CAs of the operating system.
_NO_FILE = 'system'
# Parameters of drivers of MySQL with the name of a database, or with a file that can contain it.
_NAME_PARAMETERS = frozenset({'database', 'db', 'read_default_file', 'read_default_group'})

# The parts of a URL after the user and the password, divided as SQLAlchemy divides them: the host
# with the port, the name of the database, and the parameters.
_PARTS = re.compile(r'[\w+]+://(?:[^:/]*(?::[^@]*)?@)?([^/?]*)(?:/([^?]*))?(?:\?(.*))?', re.DOTALL)


class InvalidUrlError(ValueError):
    """An option does not contain a valid URL of a database. The message does not contain it."""


def validate(text: str, option: str) -> None:
    """Check the syntax and the dialect of a URL, and whether it names a database.

    :param option: the name of the option, for the message
    :raises InvalidUrlError: the text is not a URL, this service does not support its dialect, or
        it names no database
    """
    url = parse(text)
    if url is None:
        raise InvalidUrlError(
            f'[placement_database] {option} is not a database URL. Write it in the form '
            'mysql+pymysql://USER:PASSWORD@HOST/DATABASE, and percent-encode special characters '
            'of the password (%40 for @, %3A for :, %2F for /, %23 for #).'
        )
    dialect = url.get_backend_name()
    if dialect not in _DIALECTS:
        raise InvalidUrlError(
            f'[placement_database] {option} names the unknown database driver {dialect}. Use '
            'mysql+pymysql, postgresql+psycopg, or sqlite.'
        )
    if names_no_database(url):
        raise InvalidUrlError(
            f'[placement_database] {option} names no database. Add its name to the end of the '
            'URL: mysql+pymysql://USER:PASSWORD@HOST/DATABASE.'
        )


def names_no_database(url: sa.URL) -> bool:
    """Return whether a connection would use no database.

    Without a name, PostgreSQL uses the database with the name of the user, and SQLite uses the
    memory.
    """
    if url.get_backend_name() != 'mysql' or url.database:
        return False
    return not _NAME_PARAMETERS & url.query.keys()


def with_parameters(text: str, parameters: str) -> str:
    """Return a URL with `[placement_database] connection_parameters`, as oslo.db adds them."""
    if not parameters:
        return text
    return f'{text}{"&" if "?" in text else "?"}{parameters}'


def unreadable_file(url: str | sa.URL) -> str | None:
    """Describe the first file in the parameters of a URL that this process cannot read."""
    try:
        query = sa.make_url(url).query
    except (sa.exc.ArgumentError, ValueError):
        return None
    for name in _FILE_PARAMETERS:
        path = query.get(name)
        if not isinstance(path, str) or path == _NO_FILE:
            continue
        try:
            pathlib.Path(path).open('rb').close()
        except OSError as error:
            reason = error.strerror
            return f'The file {path} ({name} in [placement_database]) cannot be read: {reason}'
    return None


def parse(text: str) -> sa.URL | None:
    """Return a URL; None if the text is not a URL.

    The result is also None if the password seems to contain a special character that is not
    percent-encoded. In that case, SQLAlchemy takes the rest of the password for the host, the name
    of the database, or a parameter.
    """
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        return None
    parts = _PARTS.match(text)
    if parts is None or url.get_backend_name() == 'sqlite':
        # The URL of an SQLite database has no password, and the name of its file has any character.
        return url
    host, database, parameters = (part or '' for part in parts.groups())
    is_broken = (
        re.search('[@#]', host) or re.search('[@/#:]', database) or re.search('@', parameters)
    )
    return None if is_broken else url


def file_of(text: str | sa.URL) -> pathlib.Path | None:
    """Return the file of an SQLite database; None for other databases.

    The result is also None for a database in memory, and if the URL contains the URI of a file.
    """
    url = sa.make_url(text)
    name = url.database or ':memory:'
    # The URI of a file can have the parameter mode=memory.
    if url.get_backend_name() != 'sqlite' or name.startswith((':memory:', 'file:')):
        return None
    return pathlib.Path(name)


def masked(text: str) -> str | None:
    """Return a URL without its password and its parameters; None if `parse` returns None."""
    url = parse(text)
    return None if url is None else url.set(query={}).render_as_string(hide_password=True)


def secrets(text: str) -> Iterator[str]:
    """Yield the secrets that a URL contains."""
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        return
    if url.password:
        yield str(url.password)
    for name, values in url.normalized_query.items():
        if name in _SECRET_PARAMETERS:
            yield from values
