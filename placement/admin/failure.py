"""The error of a command that cannot do its work, for example because a file does not exist."""

from placement.conf import database_url


class CannotProceedError(RuntimeError):
    """The command cannot do its work. The message is one sentence for the operator."""


def require_file(connection: str) -> None:
    """Check that the file of an SQLite database exists, because SQLite would create an empty file.

    :param connection: the URL of a database
    :raises CannotProceedError: there is no file
    """
    file = database_url.file_of(connection)
    if file and not file.exists():
        raise CannotProceedError(
            f'The database file {file} does not exist. Run `placement-manage db sync`, or correct '
            '[placement_database] connection.'
        )
