"""Read the bodies of requests to /resource_providers/{uuid} and to the paths below it."""

from typing import Any

import webob

from placement import exception
from placement.http import request
from placement.objects import resource_provider
from placement.validation import Schema


def about_provider(req: webob.Request, uuid: str, schema: Schema) -> Any:
    """Return the body of a request for one provider, after validating the body by a schema.

    If the body is invalid and the provider does not exist, Placement returns 404 Not Found, not
    400 Bad Request. If the body is valid, the function that executes the request detects a missing
    provider, so the provider is not read here.

    :param uuid: the UUID of the provider in the path
    :raises exception.BadInput: the body is invalid, and the provider exists
    :raises exception.ResourceProviderNotFound: the body is invalid, and the provider does not exist
    """
    try:
        return request.extract_json(req, schema)
    except exception.BadInput:
        resource_provider.get(uuid)
        raise
