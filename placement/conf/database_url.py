"""URLs of databases: validation, and a form without secrets for messages."""

from collections.abc import Iterator
import pathlib

import sqlalchemy as sa

# The dialects that this service supports. The dialect `mariadb` of SQLAlchemy is not among them,
# because oslo.db and this service apply the settings of a connection to the dialect `mysql`.
_DIALECTS = ('mysql', 'postgresql', 'sqlite')

# Parameters of drivers that contain a secret.
_SECRET_PARAMETERS = frozenset(
    {'password', 'passwd', 'passphrase', 'sslpassword', 'ssl_key_password'}
)


class InvalidUrlError(ValueError):
    """An option does not contain a valid URL of a database. The message does not contain it."""


def validate(text: str, option: str) -> None:
    """Check the syntax and the dialect of a URL.

    :param option: the name of the option, for the message
    :raises InvalidUrlError: the text is not a URL, or this service does not support its dialect
    """
    try:
        dialect = sa.make_url(text).get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        # The reason is suppressed, because it can contain a part of the password.
        raise InvalidUrlError(
            f'[placement_database] {option} is not a database URL. Write it in the form '
            'mysql+pymysql://USER:PASSWORD@HOST/DATABASE, and percent-encode special characters '
            'of the password (%40 for @, %3A for :).'
        ) from None
    if dialect not in _DIALECTS:
        raise InvalidUrlError(
            f'[placement_database] {option} names the unknown database driver {dialect}. Use '
            'mysql+pymysql, postgresql+psycopg, or sqlite.'
        )


def file_of(text: str) -> pathlib.Path | None:
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
    """Return a URL without its password and its parameters; None if the text is not a URL."""
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        return None
    return url.set(query={}).render_as_string(hide_password=True)


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
