"""GET /: the version document."""

import webob

from placement import microversion, util, wsgi_wrapper

_DOCUMENT = {
    'versions': [
        {
            'id': f'v{microversion.MIN_VERSION}',
            'max_version': str(microversion.MAX_VERSION),
            'min_version': str(microversion.MIN_VERSION),
            # Only one major version has ever been, so it is the current one.
            'status': 'CURRENT',
            'links': [{'rel': 'self', 'href': ''}],
        }
    ]
}


@wsgi_wrapper.PlacementWsgify
def home(req: webob.Request) -> webob.Response:
    """Tell everybody which microversions there are."""
    return util.json_reply(req, _DOCUMENT)
