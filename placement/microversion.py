"""Microversions: the list, one constant for each feature, and the version of a request.

A client selects a version with the header ``OpenStack-API-Version: placement X.Y``. Code compares
the version with the constants, for example ``version >= microversion.CONSUMER_GENERATION``.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
import functools
from typing import Any, Generic, NamedTuple, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import microversion_parse

from placement import exception

SERVICE_TYPE = 'placement'
ENVIRON_KEY = 'placement.microversion'
HEADER = 'openstack-api-version'

# All versions, oldest first. A new version also needs a constant below and a section in
# rest_api_version_history.rst.
VERSIONS = [
    '1.0',
    '1.1',  # aggregates of a resource provider
    '1.2',  # /resource_classes, custom classes
    '1.3',  # GET /resource_providers?member_of=
    '1.4',  # GET /resource_providers?resources=
    '1.5',  # DELETE /resource_providers/{uuid}/inventories
    '1.6',  # /traits, traits of a resource provider
    '1.7',  # PUT /resource_classes/{name} creates and no longer renames
    '1.8',  # PUT /allocations/{consumer_uuid} requires project_id and user_id
    '1.9',  # GET /usages
    '1.10',  # GET /allocation_candidates
    '1.11',  # link from a resource provider to its allocations
    '1.12',  # PUT /allocations/{consumer_uuid} accepts an object keyed by provider
    '1.13',  # POST /allocations
    '1.14',  # trees of resource providers, in_tree
    '1.15',  # Last-Modified and Cache-Control
    '1.16',  # GET /allocation_candidates?limit=
    '1.17',  # GET /allocation_candidates?required=, traits in provider summaries
    '1.18',  # GET /resource_providers?required=
    '1.19',  # provider generation in aggregates
    '1.20',  # POST /resource_providers returns the provider
    '1.21',  # GET /allocation_candidates?member_of=
    '1.22',  # forbidden traits
    '1.23',  # code in errors
    '1.24',  # member_of may be repeated
    '1.25',  # granular request groups
    '1.26',  # reserved may equal total
    '1.27',  # all resource classes in provider summaries
    '1.28',  # consumer generations
    '1.29',  # candidates from nested providers
    '1.30',  # POST /reshaper
    '1.31',  # GET /allocation_candidates?in_tree=
    '1.32',  # forbidden aggregates
    '1.33',  # textual suffixes of request groups
    '1.34',  # mappings of request groups to providers
    '1.35',  # root_required
    '1.36',  # same_subtree, request groups without resources
    '1.37',  # the parent of a provider may be changed or removed
    '1.38',  # consumer types
    '1.39',  # any-of traits, required may be repeated
]


class Version(NamedTuple):
    """A microversion. Comparisons use the two numbers, so 1.9 is before 1.10."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f'{self.major}.{self.minor}'

    def matches(
        self,
        min_version: tuple[int, int] | None = None,
        max_version: tuple[int, int] | None = None,
    ) -> bool:
        """Return whether this version is in a range.

        Both bounds are inclusive; None means no bound.
        """
        return (min_version is None or min_version <= self) and (
            max_version is None or self <= max_version
        )

    def before(self) -> 'Version':
        """Return the previous version.

        If this version introduces a new implementation of a handler, the previous version is the
        `max_version` of the old implementation.
        """
        return Version(self.major, self.minor - 1)


AGGREGATES = Version(1, 1)
RESOURCE_CLASSES = Version(1, 2)
PROVIDERS_MEMBER_OF = Version(1, 3)
PROVIDERS_RESOURCES = Version(1, 4)
DELETE_INVENTORIES = Version(1, 5)
TRAITS = Version(1, 6)
RESOURCE_CLASS_PUT_CREATES = Version(1, 7)
ALLOCATION_OWNER = Version(1, 8)
USAGES = Version(1, 9)
ALLOCATION_CANDIDATES = Version(1, 10)
ALLOCATIONS_LINK = Version(1, 11)
ALLOCATIONS_BY_PROVIDER = Version(1, 12)
POST_ALLOCATIONS = Version(1, 13)
NESTED_PROVIDERS = Version(1, 14)
LAST_MODIFIED = Version(1, 15)
CANDIDATES_LIMIT = Version(1, 16)
CANDIDATES_REQUIRED = Version(1, 17)
PROVIDERS_REQUIRED = Version(1, 18)
AGGREGATE_GENERATION = Version(1, 19)
PROVIDER_POST_RETURNS_BODY = Version(1, 20)
CANDIDATES_MEMBER_OF = Version(1, 21)
FORBIDDEN_TRAITS = Version(1, 22)
ERROR_CODES = Version(1, 23)
REPEATED_MEMBER_OF = Version(1, 24)
GRANULAR_GROUPS = Version(1, 25)
RESERVED_MAY_EQUAL_TOTAL = Version(1, 26)
SUMMARIES_ALL_CLASSES = Version(1, 27)
CONSUMER_GENERATION = Version(1, 28)
NESTED_CANDIDATES = Version(1, 29)
RESHAPER = Version(1, 30)
CANDIDATES_IN_TREE = Version(1, 31)
FORBIDDEN_AGGREGATES = Version(1, 32)
TEXT_SUFFIXES = Version(1, 33)
MAPPINGS = Version(1, 34)
ROOT_REQUIRED = Version(1, 35)
SAME_SUBTREE = Version(1, 36)
REPARENTING = Version(1, 37)
CONSUMER_TYPES = Version(1, 38)
ANY_TRAITS = Version(1, 39)

_BY_TEXT = {text: Version(*map(int, text.split('.'))) for text in VERSIONS}
MIN_VERSION = _BY_TEXT[VERSIONS[0]]
MAX_VERSION = _BY_TEXT[VERSIONS[-1]]


# Variants -----------------------------------------------------------------------

Variant = TypeVar('Variant', covariant=True)


@dataclass(frozen=True, slots=True)
class Window(Generic[Variant]):
    """A variant and the range of microversions, both inclusive, in which it applies."""

    since: Version
    until: Version
    variant: Variant


class Variants(Generic[Variant]):
    """Maps each microversion to the variant that applies to it.

    A variant is, for example, the JSON schema of a request body.

    :param variants: maps the first microversion of each variant to the variant
    """

    __slots__ = ('_by_version', '_variants')

    def __init__(self, variants: Mapping[Version, Variant]) -> None:
        self._variants = dict(sorted(variants.items()))
        self._by_version: dict[tuple[int, int], Variant] = {}
        for version in _BY_TEXT.values():
            earlier = [since for since in variants if since <= version]
            if earlier:
                self._by_version[version] = variants[max(earlier)]

    def pick(self, version: tuple[int, int]) -> Variant:
        """Return the variant that applies to a microversion.

        :raises KeyError: the microversion is before that of the first variant
        """
        return self._by_version[version]

    def windows(self) -> list[Window[Variant]]:
        """Return all variants, each with its first and last microversion, oldest first."""
        starts = list(self._variants)
        ends = [later.before() for later in starts[1:]] + [MAX_VERSION]
        return [
            Window(since, until, self._variants[since])
            for since, until in zip(starts, ends, strict=True)
        ]


# Versioned handlers -------------------------------------------------------------


class Implementation(NamedTuple):
    """One implementation of a versioned handler, and the range of microversions that it serves."""

    min_version: Version
    max_version: Version
    function: Callable[..., Any]


# Full name of a handler -> its implementations. A unit test checks that no two ranges overlap.
VERSIONED_METHODS: dict[str, list[Implementation]] = defaultdict(list)

Handler = TypeVar('Handler', bound=Callable[..., Any])


def version_handler(
    min_version: Version,
    max_version: Version | None = None,
    path_is_older: bool = False,
) -> Callable[[Handler], Handler]:
    """Return a decorator that restricts a function to a range of microversions.

    Several functions with the same name can implement one handler, each for its own range. The
    handler calls the function whose range contains the microversion of the request. If there is no
    such function, the handler raises RouteNotFound.

    :param min_version: the first microversion that the function serves
    :param max_version: the last microversion that the function serves; by default, the latest
    :param path_is_older: whether the path exists in earlier microversions, but without this method;
        the handler then raises MethodNotAllowed instead of RouteNotFound
    """

    def decorator(function: Handler) -> Handler:
        implementations = VERSIONED_METHODS[f'{function.__module__}.{function.__qualname__}']
        implementations.append(Implementation(min_version, max_version or MAX_VERSION, function))

        @functools.wraps(function)
        def choose(req: Any, *args: Any, **kwargs: Any) -> Any:
            version = req.environ[ENVIRON_KEY]
            for implementation in implementations:
                if implementation.min_version <= version <= implementation.max_version:
                    return implementation.function(req, *args, **kwargs)
            if path_is_older:
                raise exception.MethodNotAllowed(req.environ['REQUEST_METHOD'])
            raise exception.RouteNotFound

        return choose  # type: ignore[return-value]  # has the signature of the function

    return decorator


# The version of a request -------------------------------------------------------


class MicroversionMiddleware:
    """Stores the microversion in the WSGI environment and adds version headers to the response."""

    def __init__(self, application: WSGIApplication) -> None:
        self.application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request.

        :raises exception.MalformedVersion: the header does not have the form X.Y
        :raises exception.UnsupportedVersion: the service does not support the version
        """
        header = environ.get('HTTP_OPENSTACK_API_VERSION')
        version = parse_header(header) if header else MIN_VERSION
        environ[ENVIRON_KEY] = version
        version_headers = ((HEADER, f'{SERVICE_TYPE} {version}'), ('vary', HEADER))

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            return start_response(status, [*headers, *version_headers], *args)

        return self.application(environ, start)


def only_since(since: Version, environ: WSGIEnvironment) -> str:
    """Return a clause of a message: what the client requests exists in later microversions.

    :param environ: the environment of a request with an earlier microversion
    """
    is_default = not environ.get('HTTP_OPENSTACK_API_VERSION')
    reason = ', because it has no OpenStack-API-Version header' if is_default else ''
    version = environ[ENVIRON_KEY]
    return f' before microversion {since}. The microversion of the request is {version}{reason}'


def parse_header(header: str) -> Version:
    """Return the microversion that a value of the header selects.

    A header value may list several services; if placement occurs more than once, its last entry
    applies. If placement does not occur or has no version, the oldest version applies.

    :raises MalformedVersion: the version does not have the form X.Y
    :raises UnsupportedVersion: the service does not support the version
    """
    text = microversion_parse.get_version({HEADER: header}, service_type=SERVICE_TYPE)
    return of_text(text) if text else MIN_VERSION


def of_text(text: str) -> Version:
    """Return the microversion of a text in the form `X.Y` or `latest`.

    :raises MalformedVersion: the text has another form
    :raises UnsupportedVersion: the service does not support the version
    """
    if text == 'latest':
        return MAX_VERSION
    try:
        version = microversion_parse.parse_version_string(text)
    except TypeError as exc:
        raise exception.MalformedVersion(
            f'Invalid microversion: {text}. It needs the form X.Y, for example {MAX_VERSION}.'
        ) from exc
    try:
        return _BY_TEXT[str(version)]
    except KeyError as exc:
        raise exception.UnsupportedVersion(
            f'Unacceptable microversion: {text}. The service has {MIN_VERSION} to {MAX_VERSION}.'
        ) from exc
