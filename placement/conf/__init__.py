"""The configuration options, one group per file.

There is no global configuration object: `register_opts` registers the options on the object of the
caller. The help texts are documentation for operators; the sample file and the configuration
reference are generated from them.
"""

from oslo_config import cfg
from oslo_log import log as logging

from placement.conf import api, base, database, libraries, paths, placement, workarounds


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the service and of its libraries on `conf`.

    Can be called again for the same object. The first call has to precede the parsing of the
    command line, because oslo.config rejects command line options (those of oslo.log) after it.
    """
    for group in (api, base, database, paths, placement, workarounds):
        group.register_opts(conf)
    # After parsing, oslo.config rejects command line options even if they are registered already.
    if 'log_config_append' not in conf:
        logging.register_options(conf)
    libraries.register_opts(conf)


def validate(conf: cfg.ConfigOpts) -> None:
    """Read every option of the service's own groups once.

    oslo.config checks a value only when the value is read, which can be during a request. Reading
    all values at start makes the service fail at start instead.

    :raises ValueError: a value has the wrong type or is not one of the choices of its option
    """
    for group in (api, placement, database, workarounds):
        dict(conf[group.GROUP.name])
