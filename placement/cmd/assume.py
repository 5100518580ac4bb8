"""The option `--assume`: parse the changes, and print the results with what was assumed."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
import functools
import re
from typing import Any

import orjson

from placement import exception, microversion
from placement.admin import console, query_text
from placement.admin.assume import apply
from placement.admin.assume.apply import Assumed, Change, World
from placement.admin.cloud import unlisted_notice
from placement.admin.console import Names
from placement.capacity import Inventory
from placement.cmd import output
from placement.objects.provider_search import Filters
from placement.schemas import AGGREGATE

_FIELDS = tuple(field.name for field in fields(Inventory))
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


def parse(texts: Iterable[str]) -> tuple[Change, ...]:
    """Return the changes of the command line.

    :raises CannotProceedError: a change is not valid; what depends on the database is not checked
    """
    return tuple(map(_parse, texts))


# Yields the state of the database after changes (see `apply.state`).
state = functools.partial(apply.state, output.progress)


def print_results(
    form: str,
    assumed: Assumed,
    known: Names,
    results: Iterable[dict[str, Any]],
    text: Callable[[], str],
) -> None:
    """Print the results of a command, and the number of the providers that they lack.

    :param form: the value of `--format`
    :param results: the elements of the JSON document
    :param text: returns the text for a terminal
    """
    if form == output.JSON:
        members = document(assumed)
        output.print_document([one | members for one in results])
    else:
        output.print_text(heading(assumed, known) + text())
    output.notify(unlisted_notice(assumed.unlisted))


def document(assumed: Assumed) -> dict[str, Any]:
    """Return the members that the changes add to a JSON document; none without changes."""
    if not assumed.changes:
        return {}
    return {'assumptions': list(assumed.changes), 'over': assumed.over}


def heading(assumed: Assumed, known: Names) -> str:
    """Return the first lines of a text for a terminal; none without changes."""
    if not assumed.changes:
        return ''
    # The hyphen of `aggregate:-UUID` is no part of the UUID.
    named = (':-'.join(map(known.in_text, text.split(':-'))) for text in assumed.changes)
    lines = [console.printable(f'Assumed: {", ".join(named)}')]
    for name, over in assumed.over.items():
        several = over['inventories'] > 1
        inventories = f'{over["inventories"]} inventories' if several else '1 inventory'
        lines.append(
            f'The usage of {name} exceeds the capacity of {inventories} by '
            f'{over["amount"]}{" in total" if several else ""}.'
        )
    return '\n'.join([*lines, '', ''])


# Parsing --------------------------------------------------------------------------


def _parse(text: str) -> Change:
    kind, _, rest = text.partition(':')
    if kind not in _GRAMMARS or not rest:
        raise apply.refusal(text, f'It has none of the forms {_FORMS}.')
    form, pattern, make = _GRAMMARS[kind]
    match = re.fullmatch(pattern, rest, re.ASCII | re.DOTALL)
    if match is None:
        raise apply.refusal(text, f'It does not have the form {form}.')
    return Change(text, functools.partial(make, **match.groupdict()))


def _copies(world: World, number: str, provider: str) -> None:
    apply.copy_tree(world, provider, int(number))


def _set(world: World, name: str, field: str, value: str, query: str | None) -> None:
    from placement.handlers.inventory import INVENTORY, parse_inventory

    try:
        body = {'resource_provider_generation': 0, 'total': 1, field: orjson.loads(value)}
    except orjson.JSONDecodeError:
        raise exception.BadInput(f"The value '{value}' is not a number.") from None
    _validate(INVENTORY, body)
    apply.set_field(world, _filters(query), name, field, getattr(parse_inventory(body), field))


def _trait(world: World, sign: str, name: str, query: str | None) -> None:
    apply.set_trait(world, _filters(query), name, sign == '+')


def _aggregate(world: World, sign: str, name: str, query: str | None) -> None:
    _validate(AGGREGATE, name)
    apply.set_aggregate(world, _filters(query), name, sign == '+')


def _filters(query: str | None) -> Filters | None:
    """Return the filters of the providers, as GET /resource_providers parses them."""
    if query is None:
        return None
    from placement.handlers.resource_provider import list_resource_providers, parse_filters
    from placement.http.request import validate_query

    version = microversion.MAX_VERSION
    schema = list_resource_providers.query_at(version)
    assert schema is not None  # The operation declares its parameters.
    items = query_text.items(query)
    return parse_filters(items, validate_query(items, schema), version)


def _validate(schema: Any, value: Any) -> None:
    # The import takes 50 ms, and most calls of the program do not need it.
    from placement import validation

    problem = validation.problem(schema, value)
    if problem is not None:
        raise exception.BadInput(f'{problem}.')


# For each kind of change: its form, what follows the colon, and the function that makes it, whose
# parameters are the groups.
_FILTER = r'(?:\?(?P<query>.*))?'
_LINK = rf'(?P<sign>[+-])(?P<name>[^?]+){_FILTER}'
_GRAMMARS: Mapping[str, tuple[str, str, Callable[..., None]]] = {
    'without': ('without:PROVIDER', '(?P<provider>.+)', apply.remove_tree),
    'copies': (
        'copies:N*PROVIDER, with N from 1 to 999999',
        r'(?P<number>[1-9][0-9]{0,5})\*(?P<provider>.+)',
        _copies,
    ),
    'set': (
        f'set:CLASS.FIELD=VALUE, where FIELD is {", ".join(_FIELDS[:-1])}, or {_FIELDS[-1]}',
        rf'(?P<name>[^.=?]+)\.(?P<field>{"|".join(_FIELDS)})=(?P<value>[^?]*){_FILTER}',
        _set,
    ),
    'trait': ('trait:+NAME or trait:-NAME', _LINK, _trait),
    'aggregate': ('aggregate:+UUID or aggregate:-UUID', _LINK, _aggregate),
}
