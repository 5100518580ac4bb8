"""Create the WSGI application of the service.

Web servers import `application` from `placement.wsgi.api`, or call `init_application`.
"""

import gc
import logging as std_logging
import os
import pathlib
import syslog
from typing import Any

from oslo_config import cfg
from oslo_log import handlers as log_handlers
from oslo_log import log as logging

from placement import conf, deploy, messages
from placement.conf import authtoken, sources
from placement.db import engine
from placement.http import Application

PROFILER_DIR = 'OS_WSGI_PROFILER'

# Thresholds of the garbage collector, higher than the defaults because requests create few
# reference cycles. Compiled statements contain reference cycles, but `db.pools` runs the
# garbage collector when it is full.
_GC_THRESHOLDS = (50_000, 20, 50)

# The name of the service in syslog and in the journal, and of the log file in `log_dir`. Otherwise,
# oslo.log uses the name of the first Python file of the process. In a web server, this name is
# `<frozen importlib._bootstrap>`.
_LOG_NAME = 'placement'

LOG = logging.getLogger(__name__)


def init_application() -> Application:
    """Read the configuration, set up logging and the database, and return the application.

    :raises cfg.ConfigFilesNotFoundError: the directory that the environment variable
        `OS_PLACEMENT_CONFIG_DIR` names has no placement.conf
    :raises cfg.RequiredOptError: `[placement_database] connection` is not set, or `[api]
        auth_strategy` is keystone and `[keystone_authtoken] auth_type` is not set
    :raises exception.UnsuitableDatabase: the schema or the configuration of the database does not
        support this release; the message names the remedy
    :raises exception.InvalidPolicyFile: the policy file is malformed
    :raises sources.UnresolvedReference: the value of an option contains `$`, and not the name of an
        option after it
    :raises ImportError: an option needs a library that is not installed
    :raises ValueError: an option has an invalid value
    """
    config = cfg.ConfigOpts()
    read_configuration(config)
    return build(config)


def read_configuration(config: cfg.ConfigOpts) -> None:
    """Parse and validate the configuration, and set up logging.

    :param config: a new configuration object; the global object `cfg.CONF` is not used, because it
        may belong to another service in the same process
    """
    conf.register_opts(config)
    with sources.explaining_references(config):
        sources.read(config)
        conf.validate(config)
        _set_up_logging(config)


def build(config: cfg.ConfigOpts) -> Application:
    """Set up the database and return the application, with the exceptions of `init_application`."""
    with sources.explaining_references(config):
        engine.configure(config)
        application = deploy.loadapp(config)
        if config.api.auth_strategy == 'keystone':
            authtoken.validate(config)
        else:
            LOG.warning(
                'Every client chooses its own user and roles, because [api] auth_strategy is '
                'noauth2, which is only for tests. Set it to keystone.'
            )
        if config.log_options:
            config.log_opt_values(LOG, logging.DEBUG)
    if profiles := os.environ.get(PROFILER_DIR):
        application = _profiled(application, profiles)
    tune_garbage_collector()
    return application


def tune_garbage_collector() -> None:
    """Make the garbage collector run less often in a process that serves requests.

    PERF: a large response creates many objects. With the default thresholds, the garbage collector
    traverses all objects of the process several times during such a request. A list of 8,000
    providers then takes 131 instead of 44 ms of processor time (2026-11). This
    function also excludes the existing objects from collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _set_up_logging(config: cfg.ConfigOpts) -> None:
    # oslo.db logs the statement and the traceback of errors that Placement logs in one line, too.
    quiet = ('routes=INFO', 'oslo_db.sqlalchemy.exc_filters=CRITICAL')
    levels = [*logging.get_default_log_levels(), *quiet]
    config.set_default('default_log_levels', levels)
    if config.log_dir:
        config.set_default('log_file', f'{_LOG_NAME}.log')
    messages.set_up_log(config)
    if config.use_syslog and not config.log_config_append:
        name = config.syslog_log_facility.upper().removeprefix('LOG_')
        syslog.openlog(_LOG_NAME, 0, getattr(syslog, f'LOG_{name}'))
    for handler in std_logging.getLogger().handlers:
        if isinstance(handler, log_handlers.OSJournalHandler):
            handler.binary_name = _LOG_NAME


def _profiled(application: Application, directory: str) -> Application:
    """Return an application that writes a profile of each request to a directory."""
    # Only profiling needs werkzeug, so werkzeug is an optional dependency.
    from werkzeug.middleware import profiler

    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    return profiler.ProfilerMiddleware(
        application,
        stream=None,
        profile_dir=directory,
        filename_format=_profile_name,  # type: ignore[arg-type]  # werkzeug declares only str
    )


def _profile_name(environ: dict[str, Any]) -> str:
    # The path of a request can be longer than a file name may be.
    path = environ['PATH_INFO'].strip('/').replace('/', '.')[:150] or 'root'
    times = environ['werkzeug.profiler']
    return f'{environ["REQUEST_METHOD"]}.{path}.{times["elapsed"]:.0f}ms.{times["time"]:.6f}.prof'
