"""The committed OpenAPI documents."""

import functools
import importlib.resources

import yaml

from placement import openapi


def text_of(name):
    """Return the text of a document as a package resource."""
    return importlib.resources.files(openapi).joinpath(name).read_text()


@functools.lru_cache(maxsize=1)
def parsed(name):
    """Return the content of a document, which several tests in succession can use."""
    return yaml.load(text_of(name), yaml.CSafeLoader)


def objects(value):
    """Return all objects in a document, at any depth."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from objects(one)
