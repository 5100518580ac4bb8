"""The declaration of GET /allocation_candidates."""

from http import HTTPStatus

from placement import errors, microversion
from placement.handlers import allocation_candidate as handlers
from placement.microversion import Variants
from placement.operations import parameters
from placement.operations.operation import Change, Operation, Parameter, Rule, Success, bad
from placement.schemas import allocation_candidate as schemas

_NUMBER = '[1-9][0-9]*'
_TEXT = '[a-zA-Z0-9_-]{1,64}'
_SUFFIXES = parameters.text(parameters.listed(rf'\s*{_TEXT}\s*'))
_SUFFIX = Variants({microversion.GRANULAR_GROUPS: _NUMBER, microversion.TEXT_SUFFIXES: _TEXT})

_IN_GROUP = 'The parameter applies to the request group with the same suffix.'
_TREE = 'The UUID of a provider. The group uses only providers of the tree of this provider.'
_AGGREGATES = (
    'The UUID of an aggregate, or `in:` and several UUIDs, separated by commas. With `in:`, a '
    'provider must be in at least one of the aggregates.'
)
_MORE_AGGREGATES = (
    parameters.REPEATED_MEMBER_OF,
    Change(
        '`!` before the value excludes the providers in the aggregates.',
        since=microversion.FORBIDDEN_AGGREGATES,
    ),
)
_FORBIDDEN_TRAITS = Change(
    '`!` before a trait forbids the trait.', since=microversion.FORBIDDEN_TRAITS
)
_BEFORE_GROUPS = microversion.GRANULAR_GROUPS.before()

_UNSUFFIXED = (
    parameters.resources(
        microversion.ALLOCATION_CANDIDATES,
        'The requested amounts as a list of `CLASS:AMOUNT`, separated by commas.',
        changes=(
            Change('the parameter is required.', until=_BEFORE_GROUPS),
            Change(
                'one provider of a tree and the sharing providers of this tree can provide the '
                'amounts together.',
                until=microversion.NESTED_CANDIDATES.before(),
            ),
            Change(
                'all providers of a tree and the sharing providers of this tree can provide the '
                'amounts together.',
                since=microversion.NESTED_CANDIDATES,
            ),
        ),
        required_until=_BEFORE_GROUPS,
    ),
    parameters.single(
        'limit',
        microversion.CANDIDATES_LIMIT,
        {'type': 'integer', 'minimum': 1},
        'The maximum number of candidates. If the parameter is repeated, its first value applies, '
        'and every value is checked.',
    ),
    parameters.required(
        microversion.CANDIDATES_REQUIRED,
        'Traits, separated by commas.',
        changes=(
            Change(
                'the providers of a candidate must have all of the traits together.',
                until=_BEFORE_GROUPS,
            ),
            _FORBIDDEN_TRAITS,
            Change(
                'the providers of the unsuffixed group must have all of the traits together.',
                since=microversion.GRANULAR_GROUPS,
            ),
        ),
    ),
    parameters.member_of(microversion.CANDIDATES_MEMBER_OF, _AGGREGATES, changes=_MORE_AGGREGATES),
)

_SUFFIXED = (
    parameters.resources(
        microversion.GRANULAR_GROUPS,
        'The requested amounts of a request group as a list of `CLASS:AMOUNT`, separated by '
        'commas. One provider provides all amounts.',
        suffix=_SUFFIX,
    ),
    parameters.required(
        microversion.GRANULAR_GROUPS,
        f'Traits, separated by commas. {_IN_GROUP} The provider must have all of the traits.',
        changes=(_FORBIDDEN_TRAITS,),
        suffix=_SUFFIX,
    ),
    parameters.member_of(
        microversion.GRANULAR_GROUPS,
        f'{_AGGREGATES} {_IN_GROUP}',
        changes=_MORE_AGGREGATES,
        suffix=_SUFFIX,
    ),
    Parameter(
        name='in_tree',
        text=f'{_TREE} {_IN_GROUP}',
        value=Variants({microversion.CANDIDATES_IN_TREE: parameters.PADDED_UUID}),
        suffix=_SUFFIX,
    ),
)

_OTHERS = (
    parameters.single(
        'group_policy',
        microversion.GRANULAR_GROUPS,
        {'type': 'string', 'enum': ['none', 'isolate']},
        'With `isolate`, different providers provide the resources of different groups with a '
        'suffix. With `none`, one provider can provide the resources of several groups. Required '
        'if several groups have a suffix. If the parameter is repeated, its first value applies, '
        'and only its last value is checked.',
    ),
    parameters.single('in_tree', microversion.CANDIDATES_IN_TREE, parameters.PADDED_UUID, _TREE),
    parameters.single(
        'root_required',
        microversion.ROOT_REQUIRED,
        parameters.TRAITS_OR_FORBIDDEN,
        'Traits that the root provider must have, separated by commas. `!` before a trait forbids '
        'the trait. The parameter cannot be repeated.',
    ),
    Parameter(
        name='same_subtree',
        text=(
            'Suffixes of request groups, separated by commas. One of the providers of these groups '
            'is the ancestor of all others, or the only one. The parameter can be repeated.'
        ),
        value=Variants({microversion.SAME_SUBTREE: _SUFFIXES}),
        repeatable=microversion.SAME_SUBTREE,
    ),
)

LIST = Operation(
    method='GET',
    path='/allocation_candidates',
    handler=handlers.list_allocation_candidates,
    title='List allocation candidates',
    text=(
        'Returns the sets of resource providers from which the requested resources can be '
        'allocated now.'
    ),
    changes=(
        Change(
            'all parameters with the same suffix form a request group. The parameters that can '
            'have a suffix, but have none, form the unsuffixed group.',
            since=microversion.GRANULAR_GROUPS,
        ),
        Change(
            'a suffix is an integer of 1 or more.',
            since=microversion.GRANULAR_GROUPS,
            until=microversion.TEXT_SUFFIXES.before(),
        ),
        Change(
            'a suffix consists of 1 to 64 letters, digits, underscores, and hyphens.',
            since=microversion.TEXT_SUFFIXES,
        ),
    ),
    since=microversion.ALLOCATION_CANDIDATES,
    policy=Rule('placement:allocation_candidates:list', 'List allocation candidates.'),
    accepts=True,
    query=(*_UNSUFFIXED, *_SUFFIXED, *_OTHERS),
    successes=(
        Success(status=HTTPStatus.OK, when='The allocation candidates.', body=schemas.CANDIDATES),
    ),
    failures=(
        bad('A resource class does not exist.'),
        bad('A trait does not exist.', since=microversion.CANDIDATES_REQUIRED),
        bad(
            '`member_of` is repeated.',
            since=microversion.CANDIDATES_MEMBER_OF,
            until=microversion.REPEATED_MEMBER_OF.before(),
        ),
        bad('A group requires and forbids the same traits.', since=microversion.FORBIDDEN_TRAITS),
        bad(
            'Several groups have a suffix, and `group_policy` is missing.',
            since=microversion.GRANULAR_GROUPS,
        ),
        bad(
            'A group has no resources, or there is no group.',
            since=microversion.GRANULAR_GROUPS,
            until=microversion.SAME_SUBTREE.before(),
        ),
        bad(
            '`root_required` is repeated.',
            errors.QUERYPARAM_DUPLICATE_KEY,
            since=microversion.ROOT_REQUIRED,
        ),
        bad(
            '`root_required` requires and forbids the same trait.',
            errors.QUERYPARAM_BAD_VALUE,
            since=microversion.ROOT_REQUIRED,
        ),
        bad(
            '`same_subtree` has an empty item, or lists a suffix without a request group.',
            errors.QUERYPARAM_BAD_VALUE,
            since=microversion.SAME_SUBTREE,
        ),
        bad(
            'A group has no resources, and no `same_subtree` lists it.',
            errors.QUERYPARAM_BAD_VALUE,
            since=microversion.SAME_SUBTREE,
        ),
        bad(
            'No group has resources.',
            errors.QUERYPARAM_MISSING_VALUE,
            since=microversion.SAME_SUBTREE,
        ),
    ),
)
