"""Options with the paths of directories."""

import pathlib

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'tempdir',
        help='This option has no effect. It exists for compatibility with existing configuration '
        'files.',
    ),
    cfg.StrOpt(
        'pybasedir',
        default=str(pathlib.Path(__file__).resolve().parents[2]),
        sample_default='<Path>',
        help="""
The directory that contains the Python package of the service.

Do not set this option. Its only use is as the default of
`state_path`.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='$pybasedir',
        help="""
The top directory for state files.

Only the test fixtures use this option. The service stores all its
state in the database.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options with the paths of directories on `conf`."""
    conf.register_opts(OPTS)
