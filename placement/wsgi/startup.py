"""The start of the service in a web server, which reports a failure in one line."""

from collections.abc import Callable
import functools
import sys
from types import TracebackType
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from placement import messages, wsgi
from placement.http import Application

LOG = logging.getLogger(__name__)


class StartError(Exception):
    """The service does not start. The message is one line that names the reason and the remedy."""


def start() -> Application:
    """Return the application of this process.

    Web servers print the traceback of an exception, and try to start the service again at the next
    request or exit. For an operator, a traceback hides the reason, so that this function suppresses
    it, unless the option `debug` is true.

    It raises an exception even though `SystemExit` would print one line, too: if a worker of uWSGI
    exits, uWSGI starts it again, without end, and mod_wsgi does not log the message.

    :raises StartError: the service does not start
    :raises Exception: the service does not start, and `debug` is true
    """
    config = cfg.ConfigOpts()
    logs = False
    try:
        wsgi.read_configuration(config)
        logs = True
        application = wsgi.build(config)
    except Exception as error:
        if 'debug' in config and config.debug:
            raise
        sentence = messages.sentence(error)
    else:
        _restore_traceback()
        return application
    if logs:
        LOG.critical('The service does not start: %s', sentence)
    _suppress_traceback()
    raise StartError(sentence)


def _suppress_traceback() -> None:
    """Make Python and web servers print StartError in one line."""
    # Python and mod_wsgi read this variable when they print an exception. No argument of an
    # exception has the same effect, because each frame of the import adds its line to the
    # traceback.
    sys.tracebacklimit = 0
    # oslo.log has replaced this function, and would log the exception once more.
    if getattr(sys.excepthook, 'func', None) is not _print_one_line:
        sys.excepthook = functools.partial(_print_one_line, sys.excepthook)


def _print_one_line(
    otherwise: Callable[..., Any],
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    if isinstance(error, StartError):
        sys.stderr.write(f'{kind.__module__}.{kind.__name__}: {error}\n')
    else:
        otherwise(kind, error, trace)


def _restore_traceback() -> None:
    """Print tracebacks again if an earlier attempt of this process failed (mod_wsgi)."""
    if getattr(sys, 'tracebacklimit', None) == 0:
        del sys.tracebacklimit
