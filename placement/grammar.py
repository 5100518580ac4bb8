"""The grammar of query strings, UUIDs, `resources`, `required`, `member_of` and `in_tree`.

The functions convert text to plain data. They do not read the database, so they do not check
whether a name exists. Arguments select the forms that the microversion of the request allows. An
invalid value raises `BadQueryValue`, whose message contains the value.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, quote
import uuid as uuid_lib

from oslo_utils import uuidutils

from placement import exception

ANY_OF = 'in:'
NOT = '!'


def parse_query_string(text: str) -> list[tuple[str, str]]:
    """Return the names and values of the query parameters, in the order of the query string.

    :param text: the query string, in which each character is one byte (PEP 3333). Bytes may be
        percent-encoded
    :raises InvalidQuery: the query string is not valid UTF-8 or contains a NUL character
    """
    try:
        # Placement accepts bytes that are not percent-encoded.
        raw = text if text.isascii() else quote(text.encode('latin-1'), safe="%&=+;/:,!~*'()?@$")
        # HTML 4.01, appendix B.2.2: a semicolon can separate parameters, like an ampersand.
        raw = raw.replace(';', '&')
        items = parse_qsl(raw, keep_blank_values=True, encoding='utf-8', errors='strict')
    except ValueError as exc:
        raise exception.InvalidQuery('it is not valid UTF-8') from exc
    if '%00' in text or '\0' in text:
        raise exception.InvalidQuery('values must not contain NUL characters')
    return items


def parse_resources(value: str) -> dict[str, int]:
    """Return the amount of each resource class in a value of the form `CLASS:AMOUNT,...`.

    If a class is repeated, its last amount applies. Class names are not trimmed. An amount can have
    any form that Python's `int` accepts.

    :raises BadQueryValue: an item does not have the form CLASS:AMOUNT, or its amount is not a
        positive integer
    """
    amounts = {}
    for item in value.split(','):
        name, colon, text = item.partition(':')
        if not colon:
            raise exception.BadQueryValue(
                'resources', value, f"'{item}' does not have the form CLASS:AMOUNT"
            )
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
    """Return the required and the forbidden traits of one value of `required`.

    The value is either a list whose items are `NAME` or `!NAME`, or `in:NAME,NAME`.

    :param allow_forbidden: whether the microversion supports `!`
    :param allow_any: whether the microversion supports `in:`
    :returns: any-of sets (at least one trait of each set is required; a plain name is a set with
        one trait), and the forbidden traits
    :raises BadQueryValue: a trait name is empty, or the microversion does not support the form
    """
    any_of = value.startswith(ANY_OF)
    if any_of and not allow_any:
        raise exception.BadQueryValue(
            'required', value, "'in:' is not supported in this microversion"
        )
    names = [item.strip() for item in value.removeprefix(ANY_OF if any_of else '').split(',')]
    forbidden = {name for name in names if name.startswith(NOT)}
    if forbidden and not allow_forbidden:
        raise exception.BadQueryValue(
            'required', value, 'forbidden traits are not supported in this microversion'
        )
    if forbidden and any_of:
        raise exception.BadQueryValue('required', value, "'in:' and '!' cannot be combined")
    required = list(dict.fromkeys(name for name in names if name not in forbidden))
    # Repeated exclamation marks are equivalent to one.
    forbidden_names = frozenset(name.lstrip(NOT) for name in forbidden)
    if '' in required or '' in forbidden_names:
        raise exception.BadQueryValue('required', value, 'a trait name is empty')
    if any_of:
        return (frozenset(required),), frozenset()
    return tuple(frozenset((name,)) for name in required), forbidden_names


def parse_repeated_required(
    values: Iterable[str], allow_forbidden: bool, allow_any: bool
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Return the required and the forbidden traits of all values of one parameter `required`.

    :returns: the distinct any-of sets of all values (see `parse_required`), in the order of their
        first appearance, and the forbidden traits of all values
    :raises BadQueryValue: a value is invalid
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
    """Return the required and the forbidden aggregates of all values of one parameter `member_of`.

    A value has the form `UUID`, `in:UUID,UUID`, `!UUID` or `!in:UUID,UUID`.

    :param allow_forbidden: whether the microversion supports `!`
    :param allow_many: whether the microversion allows the parameter to be repeated
    :returns: the distinct any-of sets (at least one aggregate of each set is required), in the
        order of their first appearance, and the forbidden aggregates
    :raises BadQueryValue: an item is not a UUID, or the microversion does not support the form
    """
    if len(values) > 1 and not allow_many:
        raise exception.BadQueryValue(
            'member_of', '&'.join(values), 'the parameter cannot be repeated in this microversion'
        )
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        negative = value.startswith(NOT)
        if negative and not allow_forbidden:
            raise exception.BadQueryValue(
                'member_of', value, 'forbidden aggregates are not supported in this microversion'
            )
        uuids = _aggregates(value, value.removeprefix(NOT) if negative else value)
        if negative:
            forbidden |= uuids
        else:
            required[uuids] = None
    return tuple(required), frozenset(forbidden)


def _aggregates(value: str, text: str) -> frozenset[str]:
    if ',' in text and not text.startswith(ANY_OF):
        raise exception.BadQueryValue('member_of', value, "a list of aggregates requires 'in:'")
    uuids = text.removeprefix(ANY_OF).split(',')
    for uuid in uuids:
        if not uuidutils.is_uuid_like(uuid):
            raise exception.BadQueryValue('member_of', value, f"'{uuid}' is not a uuid")
    return frozenset(uuids)


def parse_in_tree(value: str) -> str:
    """Return the provider UUID in a value of `in_tree`, without leading and trailing spaces.

    :raises BadQueryValue: the value is not a UUID
    """
    uuid = value.strip()
    if not uuidutils.is_uuid_like(uuid):
        raise exception.BadQueryValue('in_tree', value, 'the value is not a uuid')
    return uuid


def normalize_uuid(text: str) -> str:
    """Return a UUID in lower case and with hyphens.

    :param text: a UUID in any form that the format `uuid` of the schemas allows
    :raises ValueError: the text is not a UUID
    """
    return str(uuid_lib.UUID(text))
