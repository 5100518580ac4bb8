"""The names of the HTTP edge that the architecture document and handlers use.

A facade: `placement.http.request`, `placement.http.reply` and `placement.http.errors` define
them.
"""

from placement.http import Application, Environ, StartResponse
from placement.http.errors import error_response, failure
from placement.http.reply import (
    absolute_url,
    empty_reply,
    json_reply,
    newest,
    now,
    pick_last_modified,
)
from placement.http.request import (
    ENVIRON_CONTEXT,
    ENVIRON_REQUEST_ID,
    JSON,
    InvalidDocument,
    InvalidQuery,
    MalformedBody,
    check_accept,
    context,
    extract_json,
    is_uuid,
    mount_prefix,
    normalize_uuid,
    path_item,
    query_items,
    read_body,
    require_content,
    validate_query,
    version,
)

__all__ = [  # noqa: RUF022  # in two groups
    # Documented: code outside of this repository may rely on these names.
    'check_accept',
    'extract_json',
    'pick_last_modified',
    'require_content',
    # For the handlers.
    'ENVIRON_CONTEXT',
    'ENVIRON_REQUEST_ID',
    'JSON',
    'Application',
    'Environ',
    'InvalidDocument',
    'InvalidQuery',
    'MalformedBody',
    'StartResponse',
    'absolute_url',
    'context',
    'empty_reply',
    'error_response',
    'failure',
    'is_uuid',
    'json_reply',
    'mount_prefix',
    'newest',
    'normalize_uuid',
    'now',
    'path_item',
    'query_items',
    'read_body',
    'validate_query',
    'version',
]
