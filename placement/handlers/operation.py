"""The declaration of an operation of the API: ``@operation('GET /traits', ...)`` above its handler.

The service derives the routes, the checks of requests, and the rules of the policy from the
declarations. What only documents an operation is in the directory `api-ref`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from placement import exception
from placement.http.reply import Call, Reply
from placement.microversion import MIN_VERSION, Variants, Version
from placement.schemas import Schema

Handler: TypeAlias = Callable[[Call], Reply]


class Rule(NamedTuple):
    """A policy rule that protects one operation or several ones (`placement.policies`).

    :ivar name: the name with which a policy file overrides the default
    :ivar check: the default, in the language of oslo.policy
    :ivar target: the query parameter with which the check compares the caller; None if the check
        depends only on the caller
    """

    name: str
    description: str
    check: str = 'rule:admin_or_service_api'
    target: str | None = None


class Parameter(NamedTuple):
    """A parameter of a query string.

    :ivar schema: the schema of the last value; `TEXT` if the handler parses the value
    :ivar since: the first microversion of the parameter
    """

    schema: Schema
    since: Version = MIN_VERSION
    required: bool = False


class PathCheck(NamedTuple):
    """A check of a value in the path, which comes after the policy and before the body.

    :ivar name: the name of the path parameter
    :ivar refusal: returns the exception for an invalid value and a description of the violation
    :ivar since: the first microversion with the check
    """

    name: str
    schema: Schema
    refusal: Callable[[str, str], exception.BadInput]
    since: Version = MIN_VERSION


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path, its handler, and the checks of a request; see `operation`."""

    method: str
    path: str
    handler: Handler
    since: Version
    rule: Rule | None
    query: Mapping[str, Parameter] | None
    body: Variants[Schema | None] | None
    path_check: PathCheck | None
    accepts: bool
    media_type_first: bool
    body_first: bool

    def body_at(self, version: Version) -> Schema | None:
        """Return the schema of the request body in a microversion, or None if it is ignored."""
        return None if self.body is None else self.body.pick(version)

    def query_at(self, version: Version) -> Schema | None:
        """Return the schema of the last values of all query parameters in a microversion.

        :returns: None if the query string is ignored, or if the handler validates it
        """
        if not self.query:
            return None
        present = {name: one for name, one in self.query.items() if one.since <= version}
        required = [name for name, one in present.items() if one.required]
        return {
            'type': 'object',
            'properties': {name: one.schema for name, one in present.items()},
            **({'required': required} if required else {}),
            'additionalProperties': False,
        }


def operation(
    route: str,
    *,
    since: Version,
    rule: Rule | None,
    query: Mapping[str, Parameter] | None = None,
    body: Schema | Variants[Schema | None] | None = None,
    path_check: PathCheck | None = None,
    accepts: bool | None = None,
    media_type_first: bool = False,
    body_first: bool = False,
) -> Callable[[Handler], Operation]:
    """Return a decorator that declares the operation of a handler.

    The checks of a request have this order: microversion, media type, policy, query string, value
    in the path, body. An invalid body is reported only if the provider in the path exists. After
    the checks, the handler is called. `media_type_first` and `body_first` declare another order.

    :param route: the method and the path. `{name}` matches one segment that is not empty
    :param since: the first microversion with this operation
    :param rule: the policy rule; None if the operation requires no token
    :param query: the parameters of the query string; None if the operation ignores the query
        string; empty if the handler validates it
    :param body: the schema of the request body, which can differ by microversion; None if the
        operation ignores the body
    :param path_check: the check of a value in the path; None if the handler finds no object for an
        invalid value
    :param accepts: whether the operation fails if the Accept header does not allow JSON; by
        default, whether the method is GET
    :param media_type_first: whether the media type is checked before the microversion
    :param body_first: whether an invalid body is reported even if the provider in the path does not
        exist
    """
    method, _, path = route.partition(' ')

    def declare(handler: Handler) -> Operation:
        return Operation(
            method=method,
            path=path,
            handler=handler,
            since=since,
            rule=rule,
            query=query,
            body=Variants({since: body}) if isinstance(body, Mapping) else body,
            path_check=path_check,
            accepts=method == 'GET' if accepts is None else accepts,
            media_type_first=media_type_first,
            body_first=body_first,
        )

    return declare
