"""Settings of the documentation build."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'doc'))

from common import *  # noqa: F403 - Sphinx reads the names of this module
import guide_search

project = 'Placement'
extensions = [
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    # Links to the API reference: :ref:`list traits`.
    'sphinx.ext.intersphinx',
    # Adds the API reference to the search.
    'guide_search',
    # Tabs, and a button that copies a block.
    'sphinx_design',
    'sphinx_copybutton',
    'request_tabs',
    # The checks of placement-status preflight.
    'preflight_checks',
    # The table of the codes of the audit.
    'audit_codes',
]
_reference = Path(__file__).resolve().parents[2] / 'api-ref' / 'build' / 'html' / 'objects.inv'
intersphinx_mapping = {'api-ref': (guide_search.REFERENCE, str(_reference))}
# The search page links the table that lists the lines of the log.
html_context |= {'log_page': guide_search.LOG_PAGE, 'log_lines': guide_search.LOG_LINES}  # noqa: F405
man_pages = [
    (f'cli/{name}', name, summary, 'Placement contributors', 1)
    for name, summary in (
        ('placement-manage', 'manage the database of Placement'),
        ('placement-status', 'check the data of Placement before an upgrade'),
    )
]
