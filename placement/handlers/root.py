"""GET /: the version document."""

from placement import microversion
from placement.handlers.operation import operation
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
    """Show the supported microversions."""
    return reply.json_reply(call, _DOCUMENT)


# A client that is given the mount point without a slash requests the empty path.
home_at_mount_point, home_at_slash = (
    operation(f'GET {path}', since=microversion.MIN_VERSION, rule=None, accepts=False)(home)
    for path in ('', '/')
)
