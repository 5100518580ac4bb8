"""Options that name places in the file system."""

import pathlib

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'tempdir',
        help='Kept so that configuration files that set it stay valid. It has no effect.',
    ),
    cfg.StrOpt(
        'pybasedir',
        default=str(pathlib.Path(__file__).resolve().parents[2]),
        sample_default='<Path>',
        help="""
The directory in which the Python package of the service lies.

There is no need to set it. It is the default of `state_path`.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='$pybasedir',
        help="""
The top directory for files that the service keeps.

The service itself keeps all its state in the database; the option
is used by its test fixtures.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options that name paths on `conf`."""
    conf.register_opts(OPTS)
