"""Bodies about a resource provider that the path names."""

from typing import Any

import webob

from placement import exception, util
from placement.objects import resource_provider
from placement.validation import Schema


def about_provider(req: webob.Request, uuid: str, schema: Schema) -> Any:
    """The valid body of a request about a provider.

    A provider that does not exist is told before a bad body is (404, not 400). It is looked
    up only when the body is bad: otherwise the function that does the work finds out.

    Raises BadInput and ResourceProviderNotFound.
    """
    try:
        return util.extract_json(req, schema)
    except exception.BadInput:
        resource_provider.get(uuid)
        raise
