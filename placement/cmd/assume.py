"""The option `--assume`: parse the changes, and print the results with what was assumed."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
import functools
import re
from typing import Any

import orjson

from placement import exception, microversion
from placement.admin import assume, console, query_text
from placement.admin.assume import Assumed, Change
from placement.admin.cloud import Cloud, unlisted_notice
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options `--assume`, `--names`, and `--format`."""
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
    output.add_names_option(parser)
    output.add_format_option(parser)


# Yields the state of the database after changes (see `assume.state`).
state = functools.partial(assume.state, output.progress)


def print_results(
    form: str,
    assumed: Assumed,
    known: Names,
    document: Any,
    text: Callable[[], str],
) -> None:
    """Print the result of a command, and the number of the providers that it lacks.

    :param form: the value of `--format`
    :param document: the JSON document: an object or a list of objects. What is assumed is added to
        each of them
    :param text: returns the text for a terminal
    """
    if form == output.JSON:
        several = document if isinstance(document, list) else [document]
        if assumed.changes:
            members = {'assumptions': list(assumed.changes), 'over': assumed.over}
            several = [one | members for one in several]
        output.print_document(several if isinstance(document, list) else several[0])
    else:
        output.print_text(_heading(assumed, known) + text())
    output.notify(unlisted_notice(assumed.cloud.unlisted))


def _heading(assumed: Assumed, known: Names) -> str:
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


def parse(text: str) -> Change:
    """Return a change of the command line.

    :raises CannotProceedError: it is not valid; what depends on the database is not checked
    """
    kind, _, rest = text.partition(':')
    if kind not in _GRAMMARS or not rest:
        raise assume.refusal(text, f'It has none of the forms {_FORMS}.')
    form, pattern, make = _GRAMMARS[kind]
    match = re.fullmatch(pattern, rest, re.ASCII | re.DOTALL)
    if match is None:
        raise assume.refusal(text, f'It does not have the form {form}.')
    given = {name: value for name, value in match.groupdict().items() if value is not None}
    try:
        values = {name: _CONVERTERS.get(name, str)(value) for name, value in given.items()}
    except exception.BadInput as error:
        raise assume.refusal(text, str(error)) from error
    return Change(text, functools.partial(make, **values))


def _new(assignment: str) -> dict[str, Any]:
    """Return the field of an inventory and its new value, as PUT of an inventory parses it."""
    from placement.handlers.inventory import INVENTORY, parse_inventory

    field, _, value = assignment.partition('=')
    try:
        body = {'resource_provider_generation': 0, 'total': 1, field: orjson.loads(value)}
    except orjson.JSONDecodeError:
        raise exception.BadInput(f"The value '{value}' is not a number.") from None
    return {field: getattr(parse_inventory(valid(INVENTORY, body)), field)}


def _filters(query: str) -> Filters:
    """Return the filters of the providers, as GET /resource_providers parses them."""
    from placement.handlers.resource_provider import list_resource_providers, parse_filters
    from placement.http.request import validate_query

    version = microversion.MAX_VERSION
    schema = list_resource_providers.query_at(version)
    assert schema is not None  # The operation declares its parameters.
    items = query_text.items(query)
    return parse_filters(items, validate_query(items, schema), version)


def valid(schema: Any, value: Any) -> Any:
    """Return a value of the command line that satisfies a schema of the API.

    :raises exception.BadInput: the API refuses the value
    """
    # The import takes 50 ms, and most calls of the program do not need it.
    from placement import validation

    problem = validation.problem(schema, value)
    # On the command line, Python represents bytes that are not UTF-8 as surrogates.
    if problem is None and str(value).encode(errors='replace').decode() != str(value):
        problem = 'it is not valid UTF-8'
    if problem is not None:
        raise exception.BadInput(f'{problem}.')
    return value


# The name of a group in a pattern -> the function that parses its text.
_CONVERTERS: Mapping[str, Callable[[str], Any]] = {
    'count': int,
    'new': _new,
    'present': lambda sign: sign == '+',
    'uuid': functools.partial(valid, AGGREGATE),
    'filters': _filters,
}
# For each kind of change: its form, what follows the colon, and the function that makes it, whose
# parameters are the groups.
_FILTER = r'(?:\?(?P<filters>.*))?'
_LINK = r'(?P<present>[+-])(?P<{}>[^?]+)' + _FILTER
_GRAMMARS: Mapping[str, tuple[str, str, Callable[..., Cloud]]] = {
    'without': ('without:PROVIDER', '(?P<provider>.+)', assume.remove_tree),
    'copies': (
        'copies:N*PROVIDER, with N from 1 to 999999',
        r'(?P<count>[1-9][0-9]{0,5})\*(?P<provider>.+)',
        assume.copy_tree,
    ),
    'set': (
        f'set:CLASS.FIELD=VALUE, where FIELD is {", ".join(_FIELDS[:-1])}, or {_FIELDS[-1]}',
        rf'(?P<class_name>[^.=?]+)\.(?P<new>(?:{"|".join(_FIELDS)})=[^?]*){_FILTER}',
        assume.set_field,
    ),
    'trait': ('trait:+NAME or trait:-NAME', _LINK.format('name'), assume.set_trait),
    'aggregate': (
        'aggregate:+UUID or aggregate:-UUID',
        _LINK.format('uuid'),
        assume.set_aggregate,
    ),
}
