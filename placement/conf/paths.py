"""Options that name directories."""

import pathlib

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'tempdir',
        help='This option has no effect. It exists so that configuration files that set it remain '
        'valid.',
    ),
    cfg.StrOpt(
        'pybasedir',
        default=str(pathlib.Path(__file__).resolve().parents[2]),
        sample_default='<Path>',
        help="""
The directory that contains the Python package of the service.

There is no need to set this option. It is the default of
`state_path`.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='$pybasedir',
        help="""
The top directory for state files.

The service stores all its state in the database. Only its test
fixtures use this option.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options that name directories on `conf`."""
    conf.register_opts(OPTS)
