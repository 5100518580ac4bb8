"""The option `--assume`: parse the changes, and print what they are."""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import fields
import re
from typing import Any

import orjson

from placement import exception, microversion
from placement.admin import query_text, tables
from placement.admin.assume import apply, model
from placement.admin.names import Names
from placement.capacity import Inventory
from placement.objects.provider_search import Filters
from placement.schemas import AGGREGATE

# The number in `copies:N*PROVIDER`.
_NUMBER = re.compile('[1-9][0-9]{0,5}', re.ASCII)
_FIELD = re.compile(r'(?P<class>[^.=]+)\.(?P<field>[^.=]+)=(?P<value>.*)', re.DOTALL)
_FIELDS = tuple(field.name for field in fields(Inventory))
_FIELD_NAMES = f'{", ".join(_FIELDS[:-1])}, or {_FIELDS[-1]}'
_FORMS = (
    'without:PROVIDER, copies:N*PROVIDER, set:CLASS.FIELD=VALUE, trait:+NAME, trait:-NAME, '
    'aggregate:+UUID, and aggregate:-UUID'
)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--assume`."""
    parser.add_argument(
        '--assume',
        metavar='CHANGE',
        action='append',
        default=[],
        help='compute the result as if a client had made this change, without changing the '
        f'database. The forms are {_FORMS}. The last five can end with ?FILTER, a query of GET '
        '/resource_providers that selects the providers. The option can be repeated; the order '
        'matters',
    )


def parse(texts: Iterable[str]) -> tuple[model.Change, ...]:
    """Return the changes of the command line.

    :raises CannotProceedError: a change is not valid; what depends on the database is not checked
    """
    return tuple(map(_parse, texts))


def document(assumed: model.Assumed) -> dict[str, Any]:
    """Return the members that the changes add to a JSON document; none without changes."""
    if not assumed.changes:
        return {}
    over = {
        name: {'inventories': one.inventories, 'amount': one.amount}
        for name, one in assumed.over.items()
    }
    return {'assumptions': list(assumed.changes), 'over': over}


def heading(assumed: model.Assumed, known: Names) -> str:
    """Return the first lines of a text for a terminal; none without changes."""
    if not assumed.changes:
        return ''
    # The hyphen of `aggregate:-UUID` is no part of the UUID.
    named = (':-'.join(map(known.in_text, text.split(':-'))) for text in assumed.changes)
    lines = [tables.printable(f'Assumed: {", ".join(named)}')]
    lines += (
        f'The usage of {name} exceeds the capacity of {_excess(one)}.'
        for name, one in assumed.over.items()
    )
    return '\n'.join([*lines, '', ''])


def _excess(over: model.Over) -> str:
    if over.inventories == 1:
        return f'1 inventory by {over.amount}'
    return f'{over.inventories} inventories by {over.amount} in total'


# Parsing --------------------------------------------------------------------------


def _parse(text: str) -> model.Change:
    kind, _, rest = text.partition(':')
    try:
        text.encode()
    except UnicodeEncodeError:
        # On the command line, Python represents bytes that are not UTF-8 as surrogates.
        raise apply.refusal(text, 'It is not valid UTF-8.') from None
    if kind not in _KINDS or not rest:
        raise apply.refusal(text, f'It has none of the forms {_FORMS}.')
    try:
        return _KINDS[kind](text, rest)
    except exception.BadInput as error:
        raise apply.refusal(text, str(error)) from error


def _without(text: str, provider: str) -> model.Without:
    return model.Without(text, provider)


def _copies(text: str, rest: str) -> model.Copies:
    number, star, provider = rest.partition('*')
    if not _NUMBER.fullmatch(number) or not star or not provider:
        raise exception.BadInput(
            'It does not have the form copies:N*PROVIDER, with N from 1 to 999999.'
        )
    return model.Copies(text, provider, int(number))


def _set_field(text: str, rest: str) -> model.SetField:
    assignment, filters = _with_filters(rest)
    match = _FIELD.fullmatch(assignment)
    if match is None or match['field'] not in _FIELDS:
        raise exception.BadInput(
            f'It does not have the form set:CLASS.FIELD=VALUE, where FIELD is {_FIELD_NAMES}.'
        )
    value = _value(match['field'], match['value'])
    return model.SetField(text, match['class'], match['field'], value, filters)


def _value(field: str, text: str) -> int | float:
    """Return the value of a field; the schema of PUT .../inventories/{class} checks it."""
    # The imports take 50 ms, and most calls of the program do not need them.
    from placement import validation
    from placement.handlers.inventory import INVENTORY, parse_inventory

    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise exception.BadInput(f"The value '{text}' is not a number.") from None
    body = {'resource_provider_generation': 0, 'total': 1, field: value}
    _require_valid(validation.problem(INVENTORY, body))
    parsed: int | float = getattr(parse_inventory(body), field)
    return parsed


def _set_trait(text: str, rest: str) -> model.SetTrait:
    name, present, filters = _link(rest)
    return model.SetTrait(text, name, present, filters)


def _set_aggregate(text: str, rest: str) -> model.SetAggregate:
    from placement import validation

    uuid, present, filters = _link(rest)
    _require_valid(validation.problem(AGGREGATE, uuid))
    return model.SetAggregate(text, uuid, present, filters)


def _link(rest: str) -> tuple[str, bool, Filters | None]:
    """Return a trait or an aggregate, whether it is added, and the filters of the providers."""
    signed, filters = _with_filters(rest)
    sign, name = signed[:1], signed[1:]
    if sign not in ('+', '-') or not name:
        raise exception.BadInput('A plus or a minus sign and a name must follow the colon.')
    return name, sign == '+', filters


def _with_filters(rest: str) -> tuple[str, Filters | None]:
    """Return what precedes the filter, and the filter, as GET /resource_providers parses it."""
    before, mark, query = rest.partition('?')
    if not mark:
        return before, None
    from placement.handlers.resource_provider import list_resource_providers, parse_filters
    from placement.http.request import validate_query

    version = microversion.MAX_VERSION
    schema = list_resource_providers.query_at(version)
    assert schema is not None  # The operation declares its parameters.
    items = query_text.items(query)
    return before, parse_filters(items, validate_query(items, schema), version)


def _require_valid(problem: str | None) -> None:
    if problem is not None:
        raise exception.BadInput(f'{problem}.')


_KINDS: dict[str, Callable[[str, str], model.Change]] = {
    'without': _without,
    'copies': _copies,
    'set': _set_field,
    'trait': _set_trait,
    'aggregate': _set_aggregate,
}
