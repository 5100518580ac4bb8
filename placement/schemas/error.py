"""Schemas of error documents."""

from typing import Any

from placement import errors, microversion
from placement.microversion import Variants
from placement.schemas import common

# All values of `code`.
CODES = tuple(value for name, value in vars(errors).items() if name.isupper())

_REQUEST_ID = r'^req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z'

_MEMBERS: dict[str, Any] = {
    'status': {
        'type': 'integer',
        'minimum': 400,
        'maximum': 599,
        'description': 'The HTTP status code of the response.',
    },
    'title': {'type': 'string', 'description': 'The phrase of the status code.'},
    'detail': {
        'type': 'string',
        'minLength': 1,
        'description': 'A description of the error. The last line is the message.',
    },
    'request_id': {
        'type': 'string',
        'pattern': _REQUEST_ID,
        'description': 'The ID that Placement assigned to the request.',
    },
}
_CODE: dict[str, Any] = {
    'code': {
        'type': 'string',
        'enum': list(CODES),
        'description': 'The error code, which distinguishes errors with the same status.',
    }
}
_CODE_IF_VERSION = {
    **_CODE['code'],
    'description': f'{_CODE["code"]["description"]} Missing if the microversion is malformed.',
}


def _document(members: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return common.closed(
        {
            'errors': common.array(
                common.closed(members, optional),
                minItems=1,
                maxItems=1,
                description='The error. The array always has one element.',
            )
        }
    )


ERROR = Variants(
    {
        microversion.MIN_VERSION: _document(_MEMBERS),
        microversion.ERROR_CODES: _document({**_MEMBERS, **_CODE}),
    }
)

# The body of 400 Bad Request.
BAD_REQUEST = Variants(
    {
        microversion.MIN_VERSION: _document(_MEMBERS),
        microversion.ERROR_CODES: _document({**_MEMBERS, 'code': _CODE_IF_VERSION}, ('code',)),
    }
)

# The body of any other error that can occur before Placement determines the microversion of the
# request. `max_version` and `min_version` are in the body of 406 Not Acceptable if the service does
# not support the microversion.
EARLY_ERROR = _document(
    {
        **_MEMBERS,
        **_CODE,
        'max_version': {
            'type': 'string',
            'description': 'The latest microversion, if the requested one is not supported.',
        },
        'min_version': {
            'type': 'string',
            'description': 'The earliest microversion, if the requested one is not supported.',
        },
    },
    optional=('code', 'max_version', 'min_version'),
)

_MESSAGE = {'type': 'string', 'description': 'A description of the error.'}
_TITLE = {'type': 'string', 'description': 'The phrase of the status code.'}

# The bodies of 401 Unauthorized: from Placement itself, and from keystonemiddleware.
UNAUTHORIZED_BY_PLACEMENT = common.closed(
    {
        'message': _MESSAGE,
        'code': {'type': 'string', 'description': 'The status code and its phrase.'},
        'title': _TITLE,
    }
)
UNAUTHORIZED_BY_KEYSTONEMIDDLEWARE = common.closed(
    {
        'error': common.described(
            'The error.',
            {
                'code': {'type': 'integer', 'description': 'The status code.'},
                'title': _TITLE,
                'message': _MESSAGE,
            },
        )
    }
)
UNAUTHORIZED: dict[str, Any] = {
    'oneOf': [UNAUTHORIZED_BY_PLACEMENT, UNAUTHORIZED_BY_KEYSTONEMIDDLEWARE]
}
