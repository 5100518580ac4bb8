"""GET /: the version document."""

from placement import microversion
from placement.http import reply
from placement.http.reply import Call, Reply

_DOCUMENT = {
    'versions': [
        {
            'id': f'v{microversion.MIN_VERSION}',
            'max_version': str(microversion.MAX_VERSION),
            'min_version': str(microversion.MIN_VERSION),
            # Placement has only one major API version.
            'status': 'CURRENT',
            'links': [{'rel': 'self', 'href': ''}],
        }
    ]
}


def home(call: Call) -> Reply:
    """GET /: show the supported microversions."""
    return reply.json_reply(call, _DOCUMENT)
