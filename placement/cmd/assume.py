"""The option `--assume`: parse the changes, and print the results with what was assumed."""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
import contextlib
from dataclasses import fields
import functools
import re
from typing import Any

import orjson
import sqlalchemy as sa

from placement import exception, microversion
from placement.admin import query_text, tables
from placement.admin.assume import apply
from placement.admin.assume.apply import Assumed, Change, World
from placement.admin.cloud import unlisted_notice
from placement.admin.names import Names
from placement.capacity import Inventory
from placement.cmd import output
from placement.db import engine
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


@contextlib.contextmanager
def state(
    changes: Sequence[Change],
    consumers_of: Callable[[sa.Connection], Collection[int] | None] = lambda _: frozenset(),
) -> Iterator[Assumed]:
    """Yield the state of the database after changes.

    :param consumers_of: returns the ids of the root providers whose consumers the command reads;
        None for all (see `apply.assumed`)
    """
    with engine.snapshot() as source:
        copied = consumers_of(source) if changes else frozenset()
        with apply.assumed(source, changes, output.progress, copied) as assumed:
            yield assumed


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
    over = {name: one._asdict() for name, one in assumed.over.items()}
    return {'assumptions': list(assumed.changes), 'over': over}


def heading(assumed: Assumed, known: Names) -> str:
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


def _excess(over: apply.Over) -> str:
    if over.inventories == 1:
        return f'1 inventory by {over.amount}'
    return f'{over.inventories} inventories by {over.amount} in total'


# Parsing --------------------------------------------------------------------------


def _parse(text: str) -> Change:
    kind, _, rest = text.partition(':')
    try:
        text.encode()
    except UnicodeEncodeError:
        # On the command line, Python represents bytes that are not UTF-8 as surrogates.
        raise apply.refusal(text, 'It is not valid UTF-8.') from None
    if kind not in _GRAMMARS or not rest:
        raise apply.refusal(text, f'It has none of the forms {_FORMS}.')
    form, pattern, make = _GRAMMARS[kind]
    match = re.fullmatch(pattern, rest, re.ASCII | re.DOTALL)
    if match is None:
        raise apply.refusal(text, f'It does not have the form {form}.')
    return Change(text, functools.partial(make, match=match))


def _without(world: World, match: re.Match[str]) -> None:
    apply.remove_tree(world, match['provider'])


def _copies(world: World, match: re.Match[str]) -> None:
    apply.copy_tree(world, match['provider'], int(match['number']))


def _set(world: World, match: re.Match[str]) -> None:
    # The imports take 50 ms, and most calls of the program do not need them.
    from placement import validation
    from placement.handlers.inventory import INVENTORY, parse_inventory

    field, text = match['field'], match['value']
    try:
        body = {'resource_provider_generation': 0, 'total': 1, field: orjson.loads(text)}
    except orjson.JSONDecodeError:
        raise exception.BadInput(f"The value '{text}' is not a number.") from None
    _require_valid(validation.problem(INVENTORY, body))
    value = getattr(parse_inventory(body), field)
    apply.set_field(world, _filters(match), match['class'], field, value)


def _trait(world: World, match: re.Match[str]) -> None:
    apply.set_trait(world, _filters(match), match['name'], match['sign'] == '+')


def _aggregate(world: World, match: re.Match[str]) -> None:
    from placement import validation

    _require_valid(validation.problem(AGGREGATE, match['name']))
    apply.set_aggregate(world, _filters(match), match['name'], match['sign'] == '+')


def _filters(match: re.Match[str]) -> Filters | None:
    """Return the filters of the providers, as GET /resource_providers parses them."""
    if match['filter'] is None:
        return None
    from placement.handlers.resource_provider import list_resource_providers, parse_filters
    from placement.http.request import validate_query

    version = microversion.MAX_VERSION
    schema = list_resource_providers.query_at(version)
    assert schema is not None  # The operation declares its parameters.
    items = query_text.items(match['filter'])
    return parse_filters(items, validate_query(items, schema), version)


def _require_valid(problem: str | None) -> None:
    if problem is not None:
        raise exception.BadInput(f'{problem}.')


# For each kind of change: its form, what follows the colon, and the function that makes it.
_FILTER = r'(?:\?(?P<filter>.*))?'
_LINK = rf'(?P<sign>[+-])(?P<name>[^?]+){_FILTER}'
_GRAMMARS: Mapping[str, tuple[str, str, Callable[..., None]]] = {
    'without': ('without:PROVIDER', '(?P<provider>.+)', _without),
    'copies': (
        'copies:N*PROVIDER, with N from 1 to 999999',
        r'(?P<number>[1-9][0-9]{0,5})\*(?P<provider>.+)',
        _copies,
    ),
    'set': (
        f'set:CLASS.FIELD=VALUE, where FIELD is {", ".join(_FIELDS[:-1])}, or {_FIELDS[-1]}',
        rf'(?P<class>[^.=?]+)\.(?P<field>{"|".join(_FIELDS)})=(?P<value>[^?]*){_FILTER}',
        _set,
    ),
    'trait': ('trait:+NAME or trait:-NAME', _LINK, _trait),
    'aggregate': ('aggregate:+UUID or aggregate:-UUID', _LINK, _aggregate),
}
