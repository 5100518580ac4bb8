"""Settings of the documentation build."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'doc'))

from common import *  # noqa: F403 - Sphinx reads the names of this module

project = 'Placement'
extensions = ['oslo_config.sphinxext', 'oslo_policy.sphinxext']
man_pages = [
    (f'cli/{name}', name, summary, 'Placement contributors', 1)
    for name, summary in (
        ('placement-manage', 'manage the database of Placement'),
        ('placement-status', 'check the data of Placement before an upgrade'),
    )
]
