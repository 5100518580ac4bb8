"""The terms in which an operation of the API is documented."""

from dataclasses import dataclass, field
import functools
from http import HTTPStatus

from placement import errors
from placement.handlers.operation import Operation as Declared
from placement.microversion import MAX_VERSION, MIN_VERSION, Variants, Version
from placement.schemas import Schema


@dataclass(frozen=True, slots=True)
class Ranged:
    """A part of a description that applies in a range of microversions, both ends inclusive."""

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
    """

    name: str
    value: Variants[Schema]
    repeatable: Version | None = None
    suffix: Variants[str] | None = None
    required_until: Version | None = None

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
    :ivar optional: a header that such a response can have
    """

    status: HTTPStatus
    when: str
    body: Variants[Schema] | None = None
    location: bool = False
    cached: bool = False
    optional: str | None = None


@dataclass(frozen=True, slots=True)
class Failure(Ranged):
    """A reason for which a request fails.

    :ivar when: the condition, as a sentence
    :ivar code: the error code, which error documents contain since microversion 1.23
    """

    status: HTTPStatus
    when: str
    code: str = errors.UNDEFINED_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Described):
    """A method of a path, as the service declares it, with what documents it.

    :ivar declared: the declaration of the service
    :ivar title: the title in the API reference; the link to the operation contains it
    :ivar summary: what the operation does, by microversion, in OpenAPI documents
    :ivar query: the parameters of the query string; None if the operation ignores the query string
    :ivar body: the schema of the request body by microversion, with descriptions; None if the
        operation ignores the body. A variant can be None too
    :ivar checked_path: the description of the value in the path if the operation checks it; empty
        if it is the same for all operations of the path
    :ivar failures: the reasons for which a request fails, apart from those that many operations
        have in common (`api_reference.responses`)
    """

    declared: Declared
    title: str
    summary: Variants[str]
    query: tuple[Parameter, ...] | None
    body: Variants[Schema | None] | None
    checked_path: str
    successes: tuple[Success, ...]
    failures: tuple[Failure, ...]

    @property
    def since(self) -> Version:
        """Return the first microversion with this operation."""
        return self.declared.since

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


# Return the failure of a 400 Bad Request, and of a 409 Conflict.
bad = functools.partial(Failure, HTTPStatus.BAD_REQUEST)
conflict = functools.partial(Failure, HTTPStatus.CONFLICT)
