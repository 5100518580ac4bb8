"""The tests of Placement. In a source tree, they also import the package `api_reference`."""

from pathlib import Path
import sys

sys.path.append(str(Path(__file__).resolve().parents[2] / 'api-ref'))
