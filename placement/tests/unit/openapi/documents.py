"""The OpenAPI documents."""

from collections.abc import Iterator
import functools
import importlib.resources
from typing import Any

import yaml

from placement import openapi
from placement.openapi import files

# The document of a microversion, which several tests of a process can use.
content = functools.cache(files.content)


def committed() -> dict[str, Any]:
    """Return the content of the committed file."""
    text = importlib.resources.files(openapi).joinpath('placement.yaml').read_text('utf-8')
    return yaml.load(text, yaml.CSafeLoader)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Return all objects in a document, at any depth."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from objects(one)
