"""The terms in which an operation of the API is declared.

A declaration is data. The service derives the routes and the checks of requests from it when it
starts (`placement.handler`). The tests compare it with every response of the API tests. The API
reference and the OpenAPI documents are generated from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
import functools
from http import HTTPStatus
from typing import Any

from placement import errors, exception
from placement.http.reply import Call, Reply
from placement.microversion import MAX_VERSION, MIN_VERSION, Variants, Version

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ranged:
    """A part of a declaration that applies in a range of microversions, both ends inclusive."""

    since: Version = field(default=MIN_VERSION, kw_only=True)
    until: Version = field(default=MAX_VERSION, kw_only=True)

    def applies(self, version: Version) -> bool:
        """Return whether this part applies in a microversion."""
        return self.since <= version <= self.until


@dataclass(frozen=True, slots=True)
class Change(Ranged):
    """Sentences of a description that apply in a range of microversions.

    :ivar text: the sentences. The first one follows a colon, so it begins in lower case unless
        its first word is a name
    """

    text: str

    def full(self, earliest: Version) -> str:
        """Return the sentences, after the microversions in which they apply.

        :param earliest: the first microversion of the described object
        """
        if self.until < MAX_VERSION:
            return f'{max(self.since, earliest)} to {self.until}: {self.text}'
        return f'Changed in {self.since}: {self.text}' if self.since > earliest else self.plain

    @property
    def plain(self) -> str:
        """Return the sentences without the microversions."""
        return self.text[0].upper() + self.text[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An operation or a parameter, with a description.

    :ivar text: the sentences that apply in all microversions; can be empty
    :ivar changes: the other sentences
    """

    text: str
    changes: tuple[Change, ...] = ()

    def full_description(self, earliest: Version) -> str:
        """Return the description for all microversions, beginning with the given one."""
        changes = (change.full(earliest) for change in self.changes)
        return ' '.join(filter(None, (self.text, *changes)))

    def description_at(self, version: Version) -> str:
        """Return the description for one microversion, which mentions no microversion."""
        present = (change.plain for change in self.changes if change.applies(version))
        return ' '.join(filter(None, (self.text, *present)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Described):
    """A parameter of a query string.

    :ivar name: the name; for a parameter with a suffix, the part before the suffix
    :ivar value: the schema of one value by microversion, beginning with the first microversion of
        the parameter
    :ivar repeatable: the first microversion in which every value of a repeated parameter applies;
        None if there is no such microversion
    :ivar suffix: the pattern of the suffix by microversion; None if the parameter has no suffix
    :ivar required_until: the last microversion in which the parameter is required; None if it is
        optional in all microversions
    :ivar lenient: the schema by which the service validates the value, if a parser reports the
        values that `value` does not allow
    """

    name: str
    value: Variants[Schema]
    repeatable: Version | None = None
    suffix: Variants[str] | None = None
    required_until: Version | None = None
    lenient: Schema | None = None

    @property
    def since(self) -> Version:
        """Return the first microversion of the parameter."""
        return self.value.windows()[0].since

    @property
    def description(self) -> str:
        """Return the description for all microversions."""
        return self.full_description(self.since)

    def is_required(self, version: Version) -> bool:
        """Return whether the parameter is required in a microversion."""
        return self.required_until is not None and version <= self.required_until

    def starts(self) -> set[Version]:
        """Return the microversions in which the validation of the value changes."""
        windows = self.value.windows()
        return {window.since for window in (windows if self.lenient is None else windows[:1])}

    def is_repeatable(self, version: Version) -> bool:
        """Return whether every value of the repeated parameter applies in a microversion."""
        return self.repeatable is not None and version >= self.repeatable


@dataclass(frozen=True, slots=True, kw_only=True)
class Success(Ranged):
    """A response to a request that succeeded.

    :ivar when: what the service did, or under which condition it returns this response
    :ivar body: the schema of the body by microversion; None if the response has no body
    :ivar location: whether the response has the Location header
    :ivar cached: whether the response has Last-Modified and Cache-Control, although it has no body;
        every response with a body has them
    """

    status: HTTPStatus
    when: str
    body: Variants[Schema] | None = None
    location: bool = False
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Failure(Ranged):
    """A reason for which a request fails.

    :ivar when: the condition, as a sentence
    :ivar code: the error code, which error documents contain since microversion 1.23
    """

    status: HTTPStatus
    when: str
    code: str = errors.UNDEFINED_CODE


@dataclass(frozen=True, slots=True)
class Rule:
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


@dataclass(frozen=True, slots=True)
class PathCheck(Ranged):
    """A check of a value in the path, which comes after the policy and before the body.

    :ivar name: the name of the path parameter
    :ivar schema: the schema of the value
    :ivar refusal: returns the exception for an invalid value and a description of the violation
    """

    name: str
    schema: Schema
    refusal: Callable[[str, str], exception.BadInput]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Described):
    """A method of a path.

    The checks of a request have this order: microversion, media type, policy, query string, value
    in the path, body. An invalid body is reported only if the provider in the path exists. After
    the checks, the handler is called. `media_type_first` and `body_first` declare another order.

    :ivar path: the path. `{name}` matches one segment that is not empty
    :ivar handler: returns the response to a request that has passed all checks
    :ivar title: the title in the API reference; the link to the operation contains it
    :ivar since: the first microversion with this operation
    :ivar policy: the policy rule; None if the operation requires no token
    :ivar query: the parameters of the query string; None if the operation ignores the query string
    :ivar body: the schema of the request body by microversion; None if the operation ignores the
        body. A variant can be None too
    :ivar accepts: whether the operation fails if the Accept header does not allow JSON
    :ivar writes: whether the operation changes the database
    :ivar path_check: the check of a value in the path; None if the handler finds no object for an
        invalid value
    :ivar media_type_first: whether the media type is checked before the microversion
    :ivar body_first: whether an invalid body is reported even if the provider in the path does not
        exist
    :ivar failures: the reasons for which a request fails, apart from those that many operations
        have in common (`placement.operations.responses`)
    """

    method: str
    path: str
    handler: Callable[[Call], Reply]
    title: str
    since: Version
    policy: Rule | None
    successes: tuple[Success, ...]
    failures: tuple[Failure, ...] = ()
    query: tuple[Parameter, ...] | None = None
    body: Variants[Schema | None] | None = None
    accepts: bool = False
    writes: bool = False
    path_check: PathCheck | None = None
    media_type_first: bool = False
    body_first: bool = False

    @property
    def anchor(self) -> str:
        """Return the anchor of the operation in the API reference."""
        return self.title.lower().replace(' ', '-')

    @property
    def description(self) -> str:
        """Return the description for all microversions."""
        return self.full_description(self.since)

    def body_at(self, version: Version) -> Schema | None:
        """Return the schema of the request body in a microversion, or None if it is ignored."""
        return None if self.body is None else self.body.pick(version)

    def query_schemas(self) -> Variants[Schema] | None:
        """Return the schemas of the last values of all query parameters, by microversion.

        :returns: None if the operation ignores the query string, or if parameters have suffixes;
            in that case, the handler validates the query string
        """
        if self.query is None or any(one.suffix for one in self.query):
            return None
        starts = {self.since}.union(*(one.starts() for one in self.query))
        return Variants({start: self._query_schema(start) for start in starts})

    def _query_schema(self, version: Version) -> Schema:
        parameters = [one for one in self.query or () if one.since <= version]
        required = [one.name for one in parameters if one.is_required(version)]
        return {
            'type': 'object',
            'properties': {one.name: one.lenient or one.value.pick(version) for one in parameters},
            **({'required': required} if required else {}),
            'additionalProperties': False,
        }


# Return the declaration of a 400 Bad Request, a 404 Not Found, and a 409 Conflict.
bad = functools.partial(Failure, HTTPStatus.BAD_REQUEST)
missing = functools.partial(Failure, HTTPStatus.NOT_FOUND)
conflict = functools.partial(Failure, HTTPStatus.CONFLICT)


NO_PROVIDER = missing('The resource provider does not exist.')
STALE_PROVIDER = conflict(
    'The generation of the resource provider does not match the stored generation.',
    errors.CONCURRENT_UPDATE,
)
