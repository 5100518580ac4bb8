"""Microversions: the list, a name for every feature, and how a request picks one.

A client asks for a version with the header ``OpenStack-API-Version: placement X.Y``. Code
never compares with bare numbers: it asks ``version >= microversion.CONSUMER_GENERATION``.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
import functools
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

import microversion_parse

from placement import exception

SERVICE_TYPE = 'placement'
ENVIRON_KEY = 'placement.microversion'
HEADER = 'openstack-api-version'

# Every version ever published, oldest first. A new one is added here, gets a name below
# and a section in rest_api_version_history.rst.
VERSIONS = [
    '1.0',
    '1.1',  # aggregates of a resource provider
    '1.2',  # /resource_classes, custom classes
    '1.3',  # GET /resource_providers?member_of=
    '1.4',  # GET /resource_providers?resources=
    '1.5',  # DELETE /resource_providers/{uuid}/inventories
    '1.6',  # /traits, traits of a resource provider
    '1.7',  # PUT /resource_classes/{name} creates and no longer renames
    '1.8',  # project_id and user_id are required in PUT /allocations/{consumer_uuid}
    '1.9',  # GET /usages
    '1.10',  # GET /allocation_candidates
    '1.11',  # link to the allocations of a resource provider
    '1.12',  # PUT /allocations/{consumer_uuid} takes an object keyed by provider
    '1.13',  # POST /allocations
    '1.14',  # trees of resource providers, in_tree
    '1.15',  # Last-Modified and Cache-Control
    '1.16',  # limit of GET /allocation_candidates
    '1.17',  # required of GET /allocation_candidates, traits in summaries
    '1.18',  # required of GET /resource_providers
    '1.19',  # provider generation in aggregates
    '1.20',  # POST /resource_providers answers with the provider
    '1.21',  # member_of of GET /allocation_candidates
    '1.22',  # forbidden traits
    '1.23',  # code in errors
    '1.24',  # member_of may be repeated
    '1.25',  # granular request groups
    '1.26',  # an inventory may be reserved as a whole
    '1.27',  # all resource classes in provider summaries
    '1.28',  # consumer generations
    '1.29',  # candidates from nested providers
    '1.30',  # POST /reshaper
    '1.31',  # in_tree of GET /allocation_candidates
    '1.32',  # forbidden aggregates
    '1.33',  # textual suffixes of request groups
    '1.34',  # mappings of request groups to providers
    '1.35',  # root_required
    '1.36',  # same_subtree, request groups without resources
    '1.37',  # a provider may get another parent, or none
    '1.38',  # consumer types
    '1.39',  # any-of traits, required may be repeated
]


class Version(NamedTuple):
    """A microversion; compares as the pair of numbers that it is."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f'{self.major}.{self.minor}'

    def matches(
        self,
        min_version: tuple[int, int] | None = None,
        max_version: tuple[int, int] | None = None,
    ) -> bool:
        """Whether this version lies in the window, both ends included; no end is open."""
        return (min_version is None or min_version <= self) and (
            max_version is None or self <= max_version
        )

    def before(self) -> 'Version':
        """The version just before this one: the last end of a window that this one closes."""
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


# Ladders ----------------------------------------------------------------------

Rung = TypeVar('Rung')


class Ladder(Generic[Rung]):
    """Something that changes its shape at some microversions, for example a JSON schema.

    :param rungs: the first microversion of a shape -> the shape
    """

    __slots__ = ('_by_version',)

    def __init__(self, rungs: Mapping[Version, Rung]):
        self._by_version: dict[tuple[int, int], Rung] = {}
        for version in _BY_TEXT.values():
            reached = [since for since in rungs if since <= version]
            if reached:
                self._by_version[version] = rungs[max(reached)]

    def pick(self, version: tuple[int, int]) -> Rung:
        """The shape of a microversion. Raises KeyError below the first rung."""
        return self._by_version[version]


# Windows ----------------------------------------------------------------------


class OutsideWindow(exception.PlacementException):
    """The request's microversion does not have this method; `status` is the answer."""

    def __init__(self, status: int):
        self.status = status
        super().__init__(f'{HTTPStatus(status).description or HTTPStatus(status).phrase}.')


class Window(NamedTuple):
    """The microversions that one of several functions of the same name serves."""

    min_version: Version
    max_version: Version
    function: Callable[..., Any]


# Full name of a handler -> its windows. A unit test proves that none intersect.
VERSIONED_METHODS: dict[str, list[Window]] = defaultdict(list)

Handler = TypeVar('Handler', bound=Callable[..., Any])


def version_handler(
    min_version: Version,
    max_version: Version | None = None,
    status: int = HTTPStatus.NOT_FOUND,
) -> Callable[[Handler], Handler]:
    """Make a handler answer only within a window of microversions.

    Several functions may share one name, each with a window of its own; the name then stands
    for all of them. Outside of all windows the request is answered with `status`.

    :param min_version: first microversion served
    :param max_version: last microversion served; the newest there is when left out
    """

    def decorator(function: Handler) -> Handler:
        windows = VERSIONED_METHODS[f'{function.__module__}.{function.__qualname__}']
        windows.append(Window(min_version, max_version or MAX_VERSION, function))

        @functools.wraps(function)
        def choose(req: Any, *args: Any, **kwargs: Any) -> Any:
            version = req.environ[ENVIRON_KEY]
            for window in windows:
                if window.min_version <= version <= window.max_version:
                    return window.function(req, *args, **kwargs)
            raise OutsideWindow(status)

        return choose  # type: ignore[return-value]

    return decorator


# The request's version --------------------------------------------------------


class UnknownVersion(exception.PlacementException):
    """A well-formed version that this service does not have."""


class MalformedVersion(exception.PlacementException):
    """A version that is no pair of numbers."""


# Clients send a few short headers over and over, and can send long ones.
_LONGEST_CACHED = 64


def parse_header(header: str) -> Version:
    """The microversion that a value of the header asks for.

    A value may name several services; the last one for placement counts. A header that does
    not speak of placement, or names no version, asks for the oldest version.

    Raises MalformedVersion and UnknownVersion.
    """
    return _cached(header) if len(header) <= _LONGEST_CACHED else _parse(header)


def _parse(header: str) -> Version:
    wanted = microversion_parse.get_version({HEADER: header}, service_type=SERVICE_TYPE)
    if not wanted:
        return MIN_VERSION
    if wanted == 'latest':
        return MAX_VERSION
    try:
        version = microversion_parse.parse_version_string(wanted)
    except TypeError as exc:
        raise MalformedVersion(f'Invalid microversion: {wanted}') from exc
    try:
        return _BY_TEXT[str(version)]
    except KeyError as exc:
        raise UnknownVersion(f'Unacceptable microversion: {wanted}') from exc


_cached = functools.lru_cache(maxsize=256)(_parse)
