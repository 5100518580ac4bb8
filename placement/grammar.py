"""The grammar of query values: `resources`, `required`, `member_of` and `in_tree`.

Pure text in, plain data out. Which forms a microversion knows is passed in as flags by the
caller, so that nothing here looks a version up; whether a name exists is asked elsewhere.
Every refusal is a `BadQueryValue`, whose sentence repeats what was sent.
"""

from collections.abc import Iterable, Sequence

from oslo_utils import uuidutils

from placement import exception

ANY_OF = 'in:'
NOT = '!'


def parse_resources(value: str) -> dict[str, int]:
    """Read `CLASS:AMOUNT,...`; of a class given twice the last amount counts.

    Class names are taken literally. Amounts have the usual integer syntax, as `int` reads it.

    :raises BadQueryValue: for an item that is not a class and a positive amount
    """
    amounts = {}
    for item in value.split(','):
        name, colon, text = item.partition(':')
        if not colon:
            raise exception.BadQueryValue('resources', value, f"'{item}' is not CLASS:AMOUNT")
        amounts[name] = _amount(value, item, text)
    return amounts


def _amount(value: str, item: str, text: str) -> int:
    try:
        amount = int(text)
    except ValueError:
        raise exception.BadQueryValue(
            'resources', value, f"the amount of '{item}' is not an integer"
        ) from None
    if amount < 1:
        raise exception.BadQueryValue('resources', value, f"the amount of '{item}' is less than 1")
    return amount


def parse_required(
    value: str, allow_forbidden: bool, allow_any: bool
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Read one value of `required`: names, `!names` and, as a whole value, `in:NAME,NAME`.

    :returns: what has to be there, as sets of which one trait is enough each (a plain name is
        a set of one), and the traits that may not be there
    :raises BadQueryValue: for an empty item, or a form that the flags do not allow
    """
    any_of = value.startswith(ANY_OF)
    if any_of and not allow_any:
        raise exception.BadQueryValue('required', value, "'in:' is not known in this microversion")
    names = [item.strip() for item in value.removeprefix(ANY_OF if any_of else '').split(',')]
    forbidden = {name for name in names if name.startswith(NOT)}
    if forbidden and not allow_forbidden:
        raise exception.BadQueryValue(
            'required', value, 'traits cannot be forbidden in this microversion'
        )
    if forbidden and any_of:
        raise exception.BadQueryValue('required', value, "'!' has no meaning inside of 'in:'")
    required = list(dict.fromkeys(name for name in names if name not in forbidden))
    # Any number of exclamation marks says no once.
    refused = frozenset(name.lstrip(NOT) for name in forbidden)
    if '' in required or '' in refused:
        raise exception.BadQueryValue('required', value, 'a trait name is empty')
    if any_of:
        return (frozenset(required),), frozenset()
    return tuple(frozenset((name,)) for name in required), refused


def parse_repeated_required(
    values: Iterable[str], allow_forbidden: bool, allow_any: bool
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Read all values of one `required`, each as `parse_required` does.

    :returns: the different any-sets of all values, in the order of their first appearance, and
        the forbidden traits of all values
    :raises BadQueryValue: for the first value that is wrong
    """
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        any_sets, more_forbidden = parse_required(value, allow_forbidden, allow_any)
        required |= dict.fromkeys(any_sets)
        forbidden |= more_forbidden
    return tuple(required), frozenset(forbidden)


def parse_member_of(
    values: Sequence[str], allow_forbidden: bool, allow_many: bool = True
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Read all values of one `member_of`: `UUID`, `in:UUID,UUID`, `!UUID`, `!in:UUID,UUID`.

    :returns: the different sets of aggregates, of each of which one is needed, in the order of
        their first appearance, and the forbidden aggregates
    :raises BadQueryValue: for what is no uuid, or a form that the flags do not allow
    """
    if len(values) > 1 and not allow_many:
        raise exception.BadQueryValue(
            'member_of', '&'.join(values), 'it can be given only once in this microversion'
        )
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        negative = value.startswith(NOT)
        if negative and not allow_forbidden:
            raise exception.BadQueryValue(
                'member_of', value, 'aggregates cannot be forbidden in this microversion'
            )
        uuids = _aggregates(value, value.removeprefix(NOT) if negative else value)
        if negative:
            forbidden |= uuids
        else:
            required[uuids] = None
    return tuple(required), frozenset(forbidden)


def _aggregates(value: str, text: str) -> frozenset[str]:
    if ',' in text and not text.startswith(ANY_OF):
        raise exception.BadQueryValue('member_of', value, "several aggregates need 'in:'")
    uuids = text.removeprefix(ANY_OF).split(',')
    for uuid in uuids:
        if not uuidutils.is_uuid_like(uuid):
            raise exception.BadQueryValue('member_of', value, f"'{uuid}' is not a uuid")
    return frozenset(uuids)


def parse_in_tree(value: str) -> str:
    """Read the uuid of a provider; blanks around it do not count.

    :raises BadQueryValue: for what is no uuid
    """
    uuid = value.strip()
    if not uuidutils.is_uuid_like(uuid):
        raise exception.BadQueryValue('in_tree', value, 'it is not a uuid')
    return uuid
