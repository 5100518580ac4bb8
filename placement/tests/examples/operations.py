"""The operations that the examples show."""

from urllib.parse import urlsplit

from placement import handler
from placement.operations import OPERATIONS
from placement.operations.operation import Operation

_mapper = handler.Mapper(OPERATIONS)


def operation_of(method: str, url: str) -> Operation | None:
    """Return the operation of a request, or None if there is no such operation."""
    match = _mapper.match(urlsplit(url).path)
    return match[0].methods.get(method) if match else None
