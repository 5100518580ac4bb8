"""One sentence for each error that ends a command."""

from collections.abc import Callable

from oslo_config import cfg
from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement.db import failures


def sentence(error: Exception) -> str:
    """The message of an error in one line, without an SQL statement and its parameters."""
    if isinstance(error, (db_exc.DBError, sa.exc.SQLAlchemyError)):
        return f'The database failed: {failures.summary(error)}'
    return ' '.join(str(error).split()) or type(error).__name__


def missing_option(error: cfg.RequiredOptError, config: cfg.ConfigOpts) -> str:
    """The message for an option without a value, with the configuration files that were read."""
    files = ', '.join([*config.config_file, *config.config_dir]) or 'none'
    return f'{sentence(error)}; configuration files: {files}'


def run(action: Callable[[], int], config: cfg.ConfigOpts, report: Callable[[str], int]) -> int:
    """The exit status of an action, or of the report of its failure.

    :param report: prints the message of an error and returns the exit status
    :raises Exception: the error of the action, with `--debug`
    """
    try:
        return action()
    except Exception as error:
        if config.debug:
            raise
        return report(sentence(error))
