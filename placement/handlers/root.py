"""GET /: the version document."""

import webob

from placement import microversion, wsgi_wrapper
from placement.http import reply

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


@wsgi_wrapper.PlacementWsgify
def home(req: webob.Request) -> webob.Response:
    """GET /: show the supported microversions."""
    return reply.json_reply(req, _DOCUMENT)
