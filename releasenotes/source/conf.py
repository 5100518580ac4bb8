"""Settings of the release notes build."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'doc'))

from common import *  # noqa: F403 - Sphinx reads the names of this module
from common import release
import release_notes

project = 'Placement release notes'
extensions = ['reno.sphinxext']

if not release_notes.has_history():
    release_notes.read_without_history(release)
