"""Request bodies of routes below /resource_providers/{uuid}."""

from typing import Any

import webob

from placement import exception
from placement.http import request
from placement.objects import resource_provider
from placement.validation import Schema


def about_provider(req: webob.Request, uuid: str, schema: Schema) -> Any:
    """Return the body of a request about a provider, validated by a schema.

    If the provider does not exist and the body is invalid, the response is 404 Not Found. The
    provider is read only if the body is invalid: otherwise the function that handles the request
    reads it anyway.

    :param uuid: the UUID of the provider in the path
    :raises exception.BadInput: the body is invalid
    :raises exception.ResourceProviderNotFound:
    """
    try:
        return request.extract_json(req, schema)
    except exception.BadInput:
        resource_provider.get(uuid)
        raise
