"""Settings of the API reference build."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'doc'))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import *  # noqa: F403 - Sphinx reads the names of this module

project = 'Placement API reference'
extensions = [
    # Tabs, and a button that copies a block.
    'sphinx_design',
    'sphinx_copybutton',
    # Gives each section a label: its title.
    'sphinx.ext.autosectionlabel',
    # Writes the page `browse.html`; see doc/openapi_browser.py.
    'openapi_browser',
    # Writes the tables and the examples of the reference; see api-ref/api_reference/pages.
    'api_reference.pages',
]
html_css_files += ['api-reference.css']  # noqa: F405
# The search page of the guides also searches the API reference; see doc/guide_search.py.
html_context['search_page'] = '../../../doc/build/html/search.html'  # noqa: F405
