"""Conversion of the schemas of the service to the schemas of OpenAPI documents."""

from collections.abc import Iterator, Mapping
import functools
from typing import Any

from api_reference.parameters import ANY_UUID
from placement.microversion import MAX_VERSION, MIN_VERSION, Variants, Version

Schema = dict[str, Any]

# The keywords whose values map names to schemas.
_MAPS = ('properties', 'patternProperties')


def converted(schema: Mapping[str, Any], of_request: bool = False) -> Schema:
    r"""Return an equivalent schema that other tools than `jsonschema` understand.

    Patterns become regular expressions of ECMA 262, which has no ``\Z``. A closed object with one
    pattern for its keys becomes an object with `propertyNames` and `additionalProperties`: code
    generators support these keywords, but not `patternProperties`. An open object with patterns
    gets `additionalProperties`, because some validators of examples assume closed objects.

    :param of_request: whether to replace the format `uuid` by a pattern. The service accepts other
        forms of UUIDs than the format of other validators
    """
    convert = functools.partial(converted, of_request=of_request)
    result: Schema = {}
    for keyword, value in schema.items():
        if keyword in _MAPS:
            result[keyword] = {_ecma(name): convert(one) for name, one in value.items()}
        elif keyword == 'pattern':
            result[keyword] = _ecma(value)
        elif of_request and keyword == 'format' and value == 'uuid':
            result['pattern'] = _ecma(ANY_UUID)
        elif isinstance(value, Mapping):
            result[keyword] = convert(value)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            result[keyword] = [convert(one) for one in value]
        else:
            result[keyword] = value
    return _keyed(result)


def _ecma(pattern: str) -> str:
    return pattern.replace(r'\Z', '$')


def _keyed(schema: Schema) -> Schema:
    patterns = schema.get('patternProperties', {})
    if patterns and 'additionalProperties' not in schema:
        return {**schema, 'additionalProperties': True}
    closed = schema.get('additionalProperties') is False and 'properties' not in schema
    if len(patterns) != 1 or not closed:
        return schema
    result: Schema = {}
    for keyword, value in schema.items():
        if keyword == 'patternProperties':
            ((pattern, values),) = patterns.items()
            result['propertyNames'] = {'pattern': pattern}
            result['additionalProperties'] = values
        elif keyword != 'additionalProperties':
            result[keyword] = value
    return result


# Ranges of microversions --------------------------------------------------------


def range_of(
    since: Version, until: Version = MAX_VERSION, earliest: Version = MIN_VERSION
) -> Schema:
    """Return the member `x-openstack` for a range, or nothing if the range has no limit.

    :param earliest: the first microversion of the object that contains the range
    """
    limits = {}
    if since > earliest:
        limits['min-ver'] = str(since)
    if until < MAX_VERSION:
        limits['max-ver'] = str(until)
    return {'x-openstack': limits} if limits else {}


def variants(declared: Variants[Any], of_request: bool = False) -> Schema:
    """Return the schema of a body that differs by microversion, with the range of each variant.

    A property that only some of the variants have has its range, too.
    """
    windows = [window for window in declared.windows() if window.variant is not None]
    bodies = [converted(window.variant, of_request) for window in windows]
    if len(windows) == 1:
        return {**bodies[0], **range_of(windows[0].since, windows[0].until)}
    paths = [set(_properties(body)) for body in bodies]
    for body, own in zip(bodies, paths, strict=True):
        for path in own:
            having = [one for one, other in zip(windows, paths, strict=True) if path in other]
            if len(having) < len(windows):
                _at(body, path).update(
                    range_of(having[0].since, having[-1].until, windows[0].since)
                )
    return {
        'oneOf': [
            {**body, **range_of(window.since, window.until)}
            for body, window in zip(bodies, windows, strict=True)
        ],
        'x-openstack': {'discriminator': 'microversion'},
    }


Path = tuple[str, ...]


def _properties(schema: Schema, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each named property of a schema, at any depth."""
    for name, one in schema.get('properties', {}).items():
        yield (*path, 'properties', name)
        yield from _properties(one, (*path, 'properties', name))
    for keyword in ('items', 'additionalProperties'):
        if isinstance(schema.get(keyword), dict):
            yield from _properties(schema[keyword], (*path, keyword))


def _at(schema: Schema, path: Path) -> Schema:
    for keyword in path:
        schema = schema[keyword]
    return schema
