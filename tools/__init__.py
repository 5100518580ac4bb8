"""Scripts for the development and evaluation of Placement; the package does not install them."""

from pathlib import Path
import sys

# The directory of the package `api_reference`.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'api-ref'))
