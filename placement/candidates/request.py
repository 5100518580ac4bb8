"""Parses the query string of GET /allocation_candidates to a `Query`.

`parse` does all checks that do not need the database. It raises an exception for the first error,
so the order of the checks determines which error the client receives. `with_ids` replaces names
with database ids.

Of all modules of this package, only this one and `render` compare microversions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
from dataclasses import dataclass, field
import re

from placement import errors, exception, grammar, microversion
from placement.candidates import model
from placement.microversion import Version

_NUMBER = '([1-9][0-9]*)?'
_TEXT = '([a-zA-Z0-9_-]{1,64})?'
_NO_SUFFIX = '()'

# The variants of the pattern for the keys of request groups. Its groups are the kind of the key,
# for example 'resources', and the suffix.
_GROUP_KEYS: microversion.Variants[re.Pattern[str]] = microversion.Variants(
    {
        since: re.compile(f'({kinds}){suffix}')
        for since, kinds, suffix in (
            (microversion.ALLOCATION_CANDIDATES, 'resources', _NO_SUFFIX),
            (microversion.CANDIDATES_REQUIRED, 'resources|required', _NO_SUFFIX),
            (microversion.CANDIDATES_MEMBER_OF, 'resources|required|member_of', _NO_SUFFIX),
            (microversion.GRANULAR_GROUPS, 'resources|required|member_of', _NUMBER),
            (microversion.CANDIDATES_IN_TREE, 'resources|required|member_of|in_tree', _NUMBER),
            (microversion.TEXT_SUFFIXES, 'resources|required|member_of|in_tree', _TEXT),
        )
    }
)
# Each accepts what the earlier ones accept.
_GROUP_WINDOWS = _GROUP_KEYS.windows()
# Key -> the first microversion that supports it.
_OTHER_KEYS = {
    'limit': microversion.CANDIDATES_LIMIT,
    'group_policy': microversion.GRANULAR_GROUPS,
    'root_required': microversion.ROOT_REQUIRED,
    'same_subtree': microversion.SAME_SUBTREE,
}
_KEYS = ['resources', 'required', 'member_of', 'in_tree', *_OTHER_KEYS]
_LIMIT = re.compile('[1-9][0-9]*')
# Only the first 18 digits of a limit are used, because int() raises ValueError for very long texts.
# No response has so many candidates that this makes a difference.
_LIMIT_DIGITS = 18

Pairs = Sequence[tuple[str, str]]


def parse(pairs: Pairs, version: Version) -> model.Query[str]:
    """Return the query, with the names and UUIDs of the query string.

    :param pairs: the (key, value) pairs of the query string, in order
    :raises exception.BadQuery: if the query string is invalid
    """
    values = defaultdict(list)
    for key, value in pairs:
        values[key].append(value)
    _check_keys(values, version)
    limit = _limit(values['limit'])
    policy = _policy(values['group_policy'])
    root_required, root_forbidden = _root_required(values['root_required'])
    same_subtrees = tuple(parse_same_subtree(value) for value in values['same_subtree'])
    groups = _groups(pairs, version)
    _check_resourceless(groups, same_subtrees, version)
    _check_traits(groups)
    if policy is None and sum(1 for group in groups if group.suffix) > 1:
        raise exception.BadQuery(
            "'group_policy' is required if the query has more than one suffixed request group."
        )
    return model.Query(
        groups=groups,
        isolate=policy == 'isolate',
        root_required=root_required,
        root_forbidden=root_forbidden,
        same_subtrees=effective(same_subtrees),
        limit=limit,
        nested=version >= microversion.NESTED_CANDIDATES,
    )


def _check_keys(values: Mapping[str, list[str]], version: Version) -> None:
    for key in values:
        since = _since(key)
        if since is None or version < since:
            raise exception.UnknownParameter(key, since, _KEYS)
    if 'resources' not in values and version < microversion.GRANULAR_GROUPS:
        raise exception.BadQuery("The query parameter 'resources' is required.")


def _since(key: str) -> Version | None:
    """Return the first microversion that supports a key, or None if none does."""
    groups = (one.since for one in _GROUP_WINDOWS if one.variant.fullmatch(key))
    return _OTHER_KEYS.get(key) or next(groups, None)


def _limit(values: list[str]) -> int | None:
    for value in values:
        if not _LIMIT.fullmatch(value):
            raise exception.BadQueryValue('limit', value, 'it is not a positive integer')
    return int(values[0][:_LIMIT_DIGITS]) if values else None


def _policy(values: list[str]) -> str | None:
    if not values:
        return None
    # If group_policy is repeated, Placement validates the last value and uses the first value.
    if values[-1] not in ('none', 'isolate'):
        raise exception.BadQueryValue('group_policy', values[-1], "it must be 'none' or 'isolate'")
    return values[0]


def _root_required(values: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    if not values:
        return frozenset(), frozenset()
    if len(values) > 1:
        raise exception.BadQuery(
            "'root_required' must not be repeated.", errors.QUERYPARAM_DUPLICATE_KEY
        )
    with _naming('root_required'):
        any_sets, forbidden = grammar.parse_required(
            values[0], allow_forbidden=True, allow_any=False
        )
    required = frozenset().union(*any_sets)
    if required & forbidden:
        raise exception.BadQueryValue(
            'root_required',
            values[0],
            f'traits are both required and forbidden: {", ".join(sorted(required & forbidden))}',
            errors.QUERYPARAM_BAD_VALUE,
        )
    return required, forbidden


def parse_same_subtree(value: str) -> frozenset[str]:
    """Return the suffixes in one value of same_subtree.

    :raises exception.BadQueryValue: if a suffix is empty
    """
    suffixes = frozenset(item.strip() for item in value.split(','))
    if '' in suffixes:
        raise exception.BadQueryValue(
            'same_subtree', value, 'a suffix is empty', errors.QUERYPARAM_BAD_VALUE
        )
    return suffixes


def effective(same_subtrees: Iterable[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Return the same_subtree parameters that have an effect, without duplicates.

    A same_subtree with one suffix has no effect: a single group is always in one subtree.
    """
    return tuple(dict.fromkeys(suffixes for suffixes in same_subtrees if len(suffixes) > 1))


# Groups -----------------------------------------------------------------------


@dataclass(slots=True)
class _Draft:
    """The values of one request group while the query string is parsed."""

    suffix: str
    resources: dict[str, int] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    member_of: list[str] = field(default_factory=list)
    in_tree: str | None = None


def _groups(pairs: Pairs, version: Version) -> tuple[model.Group[str], ...]:
    """Return the request groups in the order in which they first appear in the query string."""
    drafts: dict[str, _Draft] = {}
    for kind, suffix, value in group_values(pairs, version):
        draft = drafts.setdefault(suffix, _Draft(suffix))
        if kind == 'resources':
            with _naming(f'resources{suffix}'):
                draft.resources = grammar.parse_resources(value)
        elif kind == 'in_tree':
            with _naming(f'in_tree{suffix}'):
                draft.in_tree = grammar.parse_in_tree(value)
        elif kind == 'required':
            draft.required.append(value)
        else:
            draft.member_of.append(value)
    return tuple(_group(draft, version) for draft in drafts.values())


@contextlib.contextmanager
def _naming(parameter: str) -> Iterator[None]:
    """Name the parameter of the query in the error of a value; `grammar` knows only its kind."""
    try:
        yield
    except exception.BadQueryValue as exc:
        raise exception.BadQueryValue(parameter, exc.value, exc.reason, exc.code) from exc


def group_values(pairs: Pairs, version: Version) -> Iterator[tuple[str, str, str]]:
    """Yield the kind ('resources', for example), the suffix and the value of each group parameter.

    :param pairs: the (key, value) pairs of the query string; pairs with other keys are skipped
    """
    pattern = _GROUP_KEYS.pick(version)
    for key, value in pairs:
        if match := pattern.fullmatch(key):
            yield match.group(1), match.group(2) or '', value


def _group(draft: _Draft, version: Version) -> model.Group[str]:
    # Before microversion 1.39, Placement uses only the last value of `required`.
    values = draft.required if version >= microversion.ANY_TRAITS else draft.required[-1:]
    with _naming(f'required{draft.suffix}'):
        required, forbidden = grammar.parse_repeated_required(
            values,
            allow_forbidden=version >= microversion.FORBIDDEN_TRAITS,
            allow_any=version >= microversion.ANY_TRAITS,
        )
    with _naming(f'member_of{draft.suffix}'):
        member_of, forbidden_aggregates = grammar.parse_member_of(
            draft.member_of,
            allow_forbidden=version >= microversion.FORBIDDEN_AGGREGATES,
            allow_many=version >= microversion.REPEATED_MEMBER_OF,
        )
    return model.Group(
        suffix=draft.suffix,
        amounts=tuple(draft.resources.items()),
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
        in_tree=draft.in_tree,
    )


def _check_resourceless(
    groups: Sequence[model.Group[str]], same_subtrees: Sequence[frozenset[str]], version: Version
) -> None:
    """Check that groups without resources are allowed and are listed in same_subtree.

    :raises exception.BadQuery: if they are not, or if same_subtree lists a suffix without a group
    """
    resourceless = [group.suffix for group in groups if not group.amounts]
    if version < microversion.SAME_SUBTREE:
        if resourceless or not groups:
            raise exception.BadQuery(
                'All request groups must request resources'
                + (f': resources{resourceless[0]} is missing.' if resourceless else '.')
            )
        return
    if len(resourceless) == len(groups):
        raise exception.BadQuery(
            'At least one request group must request resources, for example resources=VCPU:1.',
            errors.QUERYPARAM_MISSING_VALUE,
        )
    listed = frozenset().union(*same_subtrees)
    if unlisted := [suffix for suffix in resourceless if suffix not in listed]:
        raise exception.BadQuery(
            'A request group without resources must be listed in same_subtree: '
            f"'{unlisted[0]}' is not listed.",
            errors.QUERYPARAM_BAD_VALUE,
        )
    if unknown := listed.difference(group.suffix for group in groups):
        raise exception.BadQuery(
            f'same_subtree lists suffixes without a request group: {", ".join(sorted(unknown))}.',
            errors.QUERYPARAM_BAD_VALUE,
        )


def _check_traits(groups: Iterable[model.Group[str]]) -> None:
    for group in groups:
        for any_set in group.required:
            if any_set <= group.forbidden:
                raise exception.BadQuery(
                    f"'required{group.suffix}' requires and forbids the same traits: "
                    f'{", ".join(sorted(any_set))}.'
                )


# Names ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ids:
    """Mappings from the names and UUIDs of a query to database ids.

    Names and UUIDs that do not exist are not in the mappings.
    """

    classes: Mapping[str, int]
    traits: Mapping[str, int]
    aggregates: Mapping[str, int]
    # Provider UUID -> the id of the root of its tree.
    roots: Mapping[str, int]
    rare_traits: frozenset[int] = frozenset()
    rare_aggregates: frozenset[int] = frozenset()
    # The id of MISC_SHARES_VIA_AGGREGATE; None if no provider has the trait.
    sharing_id: int | None = None


def with_ids(query: model.Query[str], ids: Ids) -> model.Query[int]:
    """Return the query with ids in place of names and UUIDs.

    Resource classes and traits must exist. An aggregate or an in_tree provider that does not exist
    is not an error: Placement treats it as an aggregate without members, or as a tree without
    providers.

    The traits of root_required are checked first, and then each group: first its resource classes,
    then its traits.

    :raises exception.UnknownTraits: if a trait does not exist
    :raises exception.UnknownResourceClasses: if a resource class does not exist
    """
    root_required = _trait_ids(query.root_required, ids)
    root_forbidden = _trait_ids(query.root_forbidden, ids)
    return model.Query(
        groups=tuple(_group_with_ids(group, ids) for group in query.groups),
        isolate=query.isolate,
        root_required=root_required,
        root_forbidden=root_forbidden,
        same_subtrees=query.same_subtrees,
        limit=query.limit,
        nested=query.nested,
        rare_traits=ids.rare_traits,
        rare_aggregates=ids.rare_aggregates,
    )


def _group_with_ids(group: model.Group[str], ids: Ids) -> model.Group[int]:
    if unknown := [name for name, _ in group.amounts if name not in ids.classes]:
        raise exception.UnknownResourceClasses(unknown)
    # Two sets of UUIDs can become the same set of ids: aggregates that do not exist are left out,
    # and the database can treat different texts as the same UUID.
    required = dict.fromkeys(_trait_ids(any_set, ids) for any_set in group.required)
    member_of = dict.fromkeys(_aggregate_ids(any_set, ids) for any_set in group.member_of)
    return model.Group(
        suffix=group.suffix,
        amounts=tuple((ids.classes[name], amount) for name, amount in group.amounts),
        required=tuple(required),
        forbidden=_trait_ids(group.forbidden, ids),
        member_of=tuple(member_of),
        forbidden_aggregates=_aggregate_ids(group.forbidden_aggregates, ids),
        in_tree=None if group.in_tree is None else ids.roots.get(group.in_tree, model.NO_SUCH_ROOT),
    )


def _trait_ids(names: frozenset[str], ids: Ids) -> frozenset[int]:
    if unknown := names - ids.traits.keys():
        raise exception.UnknownTraits(unknown)
    return frozenset(ids.traits[name] for name in names)


def _aggregate_ids(uuids: frozenset[str], ids: Ids) -> frozenset[int]:
    return frozenset(ids.aggregates[uuid] for uuid in uuids if uuid in ids.aggregates)
