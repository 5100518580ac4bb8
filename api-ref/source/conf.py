"""Settings of the API reference build."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'doc'))

from common import *  # noqa: F403 - Sphinx reads the names of this module

project = 'Placement API reference'
# Writes the page `browse.html`; see doc/openapi_browser.py.
extensions = ['openapi_browser']
