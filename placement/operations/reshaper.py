"""The declaration of POST /reshaper."""

from http import HTTPStatus

from placement import errors, microversion
from placement.handlers import reshaper as handlers
from placement.operations.allocation import CLAIM_FAILURES
from placement.operations.operation import STALE_PROVIDER, Operation, Rule, Success, bad, conflict
from placement.schemas import reshaper as schemas

RESHAPE = Operation(
    method='POST',
    path='/reshaper',
    handler=handlers.reshape,
    title='Reshaper',
    text=(
        'Replaces the inventories of several resource providers and the allocations of several '
        'consumers in one transaction. Placement writes everything or nothing.'
    ),
    since=microversion.RESHAPER,
    policy=Rule(
        'placement:reshaper:reshape',
        'Move inventories and their allocations between resource providers.',
        check='rule:service_api',
    ),
    writes=True,
    body=schemas.POST,
    successes=(
        Success(
            status=HTTPStatus.NO_CONTENT, when='Placement wrote the inventories and allocations.'
        ),
    ),
    failures=(
        bad(
            'A resource provider of the inventories does not exist.',
            errors.RESOURCE_PROVIDER_NOT_FOUND,
        ),
        STALE_PROVIDER,
        *CLAIM_FAILURES,
        conflict(
            'The request removes an inventory against which allocations remain.',
            errors.INVENTORY_INUSE,
        ),
    ),
)
