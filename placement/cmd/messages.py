"""Error messages of the commands: one line for each error, without a traceback."""

from collections.abc import Callable

from oslo_config import cfg
from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement.db import failures


def sentence(error: Exception) -> str:
    """Return the message of an error in one line, without an SQL statement and its parameters."""
    if isinstance(error, (db_exc.DBError, sa.exc.SQLAlchemyError)):
        return f'The database failed: {failures.summary(error)}'
    return ' '.join(str(error).split()) or type(error).__name__


def missing_option(error: cfg.RequiredOptError, config: cfg.ConfigOpts) -> str:
    """Return the message for a missing option, with the configuration files that were read."""
    files = ', '.join([*config.config_file, *config.config_dir]) or 'none'
    return f'{sentence(error)}; configuration files: {files}'


def run(action: Callable[[], int], config: cfg.ConfigOpts, report: Callable[[str], int]) -> int:
    """Run an action and return its exit status; report an exception as a message.

    :param report: the function that prints an error message and returns the exit status for an
        error
    :raises Exception: the action failed and `--debug` is set
    """
    try:
        return action()
    except Exception as error:
        if config.debug:
            raise
        return report(sentence(error))
