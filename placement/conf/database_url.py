"""URLs of databases: validation, and a form without secrets for messages."""

from collections.abc import Iterator

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
