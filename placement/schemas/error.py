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


def _document(members: dict[str, Any]) -> dict[str, Any]:
    return common.closed(
        {
            'errors': common.array(
                common.closed(members),
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

# The body of 406 Not Acceptable if the service does not support the microversion. The microversion
# of the response is not known, so the document has no code.
UNSUPPORTED_VERSION = _document(
    {
        **_MEMBERS,
        'max_version': {'type': 'string', 'description': 'The latest supported microversion.'},
        'min_version': {'type': 'string', 'description': 'The earliest supported microversion.'},
    }
)

# The body of an error that occurs before Placement determines the microversion of the request.
WITHOUT_VERSION = ERROR.pick(microversion.MIN_VERSION)

_MESSAGE = {'type': 'string', 'description': 'A description of the error.'}
_TITLE = {'type': 'string', 'description': 'The phrase of the status code.'}

# The body of 401 Unauthorized from Placement itself, and from keystonemiddleware.
UNAUTHORIZED: dict[str, Any] = {
    'oneOf': [
        common.closed(
            {
                'message': _MESSAGE,
                'code': {'type': 'string', 'description': 'The status code and its phrase.'},
                'title': _TITLE,
            }
        ),
        common.closed(
            {
                'error': {
                    **common.closed(
                        {
                            'code': {'type': 'integer', 'description': 'The status code.'},
                            'title': _TITLE,
                            'message': _MESSAGE,
                        }
                    ),
                    'description': 'The error.',
                }
            }
        ),
    ]
}
