"""The OpenAPI documents."""

from collections.abc import Iterator
import functools
import importlib.resources
from typing import Any

import yaml

from api_reference.openapi import files
import placement

# The document of a microversion, which several tests of a process can use.
content = functools.cache(files.content)


def committed() -> dict[str, Any]:
    """Return the content of each committed file, by its name."""
    return {
        path.name: yaml.load(path.read_text('utf-8'), yaml.CSafeLoader)
        for path in importlib.resources.files(placement).joinpath('openapi').iterdir()
    }


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Return all objects in a document, at any depth."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from objects(one)
