"""The declaration of the version document."""

import dataclasses
from http import HTTPStatus

from placement import microversion
from placement.handlers import root as handlers
from placement.operations.operation import Operation, Success
from placement.schemas import root as schemas

LIST = Operation(
    method='GET',
    path='/',
    handler=handlers.home,
    title='List versions',
    text=(
        'Returns the range of microversions that the service supports. The request does not need a '
        'token.'
    ),
    since=microversion.MIN_VERSION,
    policy=None,
    successes=(Success(status=HTTPStatus.OK, when='The version document.', body=schemas.VERSIONS),),
)

# A client that is given the mount point without a slash requests the empty path.
LIST_AT_MOUNT_POINT = dataclasses.replace(LIST, path='')
