"""The declaration of the version document."""

from http import HTTPStatus

from placement import microversion
from placement.operations.model import Operation, Success
from placement.schemas import root as schemas

LIST = Operation(
    title='List versions',
    text=(
        'Returns the range of microversions that the service supports. The request does not need a '
        'token.'
    ),
    since=microversion.MIN_VERSION,
    policy=None,
    successes=(Success(status=HTTPStatus.OK, when='The version document.', body=schemas.VERSIONS),),
)
