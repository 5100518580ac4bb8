"""The configuration options.

There is no global configuration object: the caller passes a configuration object to
`register_opts`. The sample configuration file and the configuration reference are generated from
the help texts of the options.
"""

from oslo_config import cfg
from oslo_log import log as logging

from placement.conf import base, database_url, opts


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of the service and its libraries on `conf`.

    Repeated calls for the same object have no effect. The first call must precede the parsing of
    the command line, because oslo.config does not allow new command-line options after parsing, and
    oslo.log registers such options.
    """
    for group, options in opts.OPTIONS.items():
        conf.register_opts(options, group=group)
    # After parsing, oslo.config rejects command-line options even if they are already registered.
    if 'log_config_append' not in conf:
        logging.register_options(conf)
    base.register_opts(conf)


def validate(conf: cfg.ConfigOpts) -> None:
    """Validate the values of all options in the service's own groups.

    oslo.config validates a value when the service reads that value, possibly during a request. This
    function reads all values, so that an invalid value prevents the start of the service.

    :raises ValueError: a value has the wrong type or is not among the choices of its option, or a
        URL is malformed
    """
    for group in filter(None, opts.OPTIONS):
        for name in conf[group]:
            _validate_option(conf, group, name)
    options = conf.placement_database
    for name in ('connection', 'slave_connection'):
        if url := options[name]:
            url = database_url.with_parameters(url, options.connection_parameters)
            database_url.validate(url, name)


def _validate_option(conf: cfg.ConfigOpts, group: str, name: str) -> None:
    try:
        conf[group][name]
    except cfg.ConfigSourceValueError as error:
        # The message of oslo.config contains the representation of an internal object.
        raise cfg.ConfigFileValueError(
            f'[{group}] {name} is not valid: {error.__context__ or error}. Correct the value.'
        ) from error
