"""The module doc/openapi_browser.py, which writes the page with the OpenAPI documents.

The directory `doc` is not a package.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import placement

ROOT = Path(placement.__file__).parents[1]


def load() -> ModuleType:
    """Return the module."""
    path = ROOT / 'doc' / 'openapi_browser.py'
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
