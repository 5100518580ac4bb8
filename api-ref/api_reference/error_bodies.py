"""The schemas of error documents."""

from typing import Any

from api_reference.bodies import array, described, value
from placement import errors, microversion
from placement.microversion import Variants
from placement.schemas import Schema, closed

# All values of `code`.
CODES = tuple(value for name, value in vars(errors).items() if name.isupper())

_REQUEST_ID = r'^req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z'
_TITLE = value('string', 'The phrase of the status code.')
_MEMBERS = {
    'status': value('integer', 'The HTTP status code of the response.', minimum=400, maximum=599),
    'title': _TITLE,
    'detail': value(
        'string', 'A description of the error. The last line is the message.', minLength=1
    ),
    'request_id': value(
        'string', 'The ID that Placement assigned to the request.', pattern=_REQUEST_ID
    ),
}
_CODE = value(
    'string',
    'The error code, which distinguishes errors with the same status.',
    enum=list(CODES),
)


def _document(members: dict[str, Any], *optional: str) -> Schema:
    error = closed(members, [name for name in members if name not in optional])
    description = 'The error. The array always has one element.'
    return closed({'errors': array(error, minItems=1, maxItems=1, description=description)})


ERROR = Variants(
    {
        microversion.MIN_VERSION: _document(_MEMBERS),
        microversion.ERROR_CODES: _document({**_MEMBERS, 'code': _CODE}),
    }
)

_CODE_IF_VERSION = described(
    _CODE, f'{_CODE["description"]} Missing if the microversion is malformed.'
)
# The body of 400 Bad Request.
BAD_REQUEST = Variants(
    {
        microversion.MIN_VERSION: _document(_MEMBERS),
        microversion.ERROR_CODES: _document({**_MEMBERS, 'code': _CODE_IF_VERSION}, 'code'),
    }
)

# The body of any other error that can occur before Placement determines the microversion of the
# request. `max_version` and `min_version` are in the body of 406 Not Acceptable if the service does
# not support the microversion.
EARLY_ERROR = _document(
    {
        **_MEMBERS,
        'code': _CODE,
        'max_version': value(
            'string', 'The latest microversion, if the requested one is not supported.'
        ),
        'min_version': value(
            'string', 'The earliest microversion, if the requested one is not supported.'
        ),
    },
    'code',
    'max_version',
    'min_version',
)

_MESSAGE = value('string', 'A description of the error.')
# The bodies of 401 Unauthorized: from Placement itself, and from keystonemiddleware.
UNAUTHORIZED_BY_PLACEMENT = closed(
    {
        'message': _MESSAGE,
        'code': value('string', 'The status code and its phrase.'),
        'title': _TITLE,
    }
)
_BY_KEYSTONEMIDDLEWARE = closed(
    {'code': value('integer', 'The status code.'), 'title': _TITLE, 'message': _MESSAGE}
)
UNAUTHORIZED_BY_KEYSTONEMIDDLEWARE = closed(
    {'error': described(_BY_KEYSTONEMIDDLEWARE, 'The error.')}
)
UNAUTHORIZED: Schema = {'oneOf': [UNAUTHORIZED_BY_PLACEMENT, UNAUTHORIZED_BY_KEYSTONEMIDDLEWARE]}
