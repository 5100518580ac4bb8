"""The configuration options, one group per file.

Nothing here holds a configuration: `register_opts` puts the options on an object that
the caller made. The help texts are the operator's documentation; the sample file is
generated from them.
"""

from oslo_config import cfg
from oslo_log import log as logging

from placement.conf import api, base, database, libraries, paths, placement, workarounds


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the service and of the libraries it uses on `conf`.

    May be called again for the same object. Command line options (those of logging)
    have to be registered before the object parses its command line, so the first call
    has to come before that.
    """
    for group in (api, base, database, paths, placement, workarounds):
        group.register_opts(conf)
    # A parsed object refuses command line options even when it knows them already.
    if 'log_config_append' not in conf:
        logging.register_options(conf)
    libraries.register_opts(conf)


def validate(conf: cfg.ConfigOpts) -> None:
    """Read every value of the service's own groups once.

    oslo.config looks at a value when it is read, which may be in the middle of a request. A
    wrong one should rather keep the service from starting.

    :raises ValueError: a value is not of its option's type, or not among its choices
    """
    for group in (api, placement, database, workarounds):
        dict(conf[group.GROUP.name])
