"""Requests of the documentation, as commands and as calls of openstacksdk.

A gabbi file `guide-NAME.yaml` contains the requests of the page `guide-NAME.rst`, unless `PAGES`
names another page. The comment at the top of the file gives each UUID a name. The commands contain
variables with these names.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
import json
from pathlib import Path
import re
import shlex
from typing import Any
from urllib.parse import parse_qsl

import yaml

FOLDER = Path(__file__).resolve().parents[1] / 'placement' / 'tests' / 'functional' / 'gabbits'
# The pages of gabbi files with other names.
PAGES = {'guide-migration': 'services'}
WIDTH = 88
# The variables and the call of `openstack.connect` in the guide select this microversion.
DEFAULT_VERSION = '1.39'
_UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
_NAME = re.compile(rf'^# +([A-Z][A-Z0-9_]*) +({_UUID})$', re.MULTILINE)
_VARIABLE = re.compile(r'\$(\w+)')
# A query parameter of a request group, and the suffix of the group.
_OF_GROUP = re.compile(r'(resources|required|member_of)(\d+|_.+)')


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with `$NAME` in place of each UUID.

    :ivar version: the number of the microversion
    :ivar body: the parsed body; None if the request has none
    """

    method: str
    url: str
    version: str
    body: Any


def names(guide: str) -> dict[str, str]:
    """Return the UUIDs of a gabbi file by their names."""
    return dict(_NAME.findall((FOLDER / f'{guide}.yaml').read_text(encoding='utf-8')))


def guide_of(page: str) -> str | None:
    """Return the name of the gabbi file of a page; None if the page shows no requests."""
    guides = [guide for guide, other in PAGES.items() if other == page]
    return guides[0] if guides else page if page.startswith('guide-') else None


def read(guide: str) -> dict[str, Request]:
    """Return the requests of a gabbi file by the names of the tests, in their order."""
    text = (FOLDER / f'{guide}.yaml').read_text(encoding='utf-8')
    for name, uuid in _NAME.findall(text):
        text = text.replace(uuid, f'${name}')
    document = yaml.safe_load(text)
    headers = document['defaults']['request_headers']
    return {test['name']: _request(test, headers) for test in document['tests']}


def _request(test: Mapping[str, Any], headers: dict[str, str]) -> Request:
    (method,) = (key for key in test if key.isupper())
    version = (headers | test.get('request_headers', {}))['openstack-api-version']
    return Request(method, test[method], version.partition(' ')[2], test.get('data'))


# curl ---------------------------------------------------------------------------


def curl(request: Request) -> str:
    """Return a command with the variables TOKEN and PLACEMENT, and those of the UUIDs."""
    # In an interactive shell, an exclamation mark between double quotes has a meaning.
    method = '' if request.method == 'GET' else f'--request {request.method} '
    lines = [
        f'curl {method}"$PLACEMENT{request.url.replace("!", "%21")}"',
        '--header "X-Auth-Token: $TOKEN"',
        f"--header 'OpenStack-API-Version: placement {request.version}'",
    ]
    if request.body is None:
        return ' \\\n    '.join(lines)
    lines.append('--json @- <<END')
    return ' \\\n    '.join(lines) + f'\n{_literal(request.body, _json)}\nEND'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# openstacksdk -------------------------------------------------------------------


def sdk(request: Request, selected: str = DEFAULT_VERSION) -> str:
    """Return a call of openstacksdk. It uses `placement`, and the variables of the UUIDs.

    :param selected: the microversion that `placement` selects
    """
    arguments = [_python(request.url)]
    if request.version != selected:
        arguments.append(f'microversion={request.version!r}')
    if request.body is not None:
        arguments.append(f'json={_literal(request.body, _python, 4)}')
    call = f'placement.{request.method.lower()}'
    if len(arguments) == 1:
        return f'{call}({arguments[0]})'
    return f'{call}(\n    ' + ',\n    '.join(arguments) + ',\n)'


def _python(value: Any) -> str:
    """Return a value in Python: `HOST` for the text `$HOST`, and an f-string for a longer text."""
    if not isinstance(value, str) or '$' not in value:
        return repr(value)
    if _VARIABLE.fullmatch(value):
        return value[1:]
    return 'f' + repr(_VARIABLE.sub(r'{\1}', value))


def _literal(value: Any, scalar: Callable[[Any], str], indent: int = 0) -> str:
    """Return a document in one line if it fits, otherwise with one item in each line.

    :param scalar: returns the text of a value that is neither a list nor an object
    """
    if not isinstance(value, dict | list):
        return scalar(value)
    brackets = '{}' if isinstance(value, dict) else '[]'
    if isinstance(value, dict):
        pairs = [(f'{scalar(key)}: ', item) for key, item in value.items()]
    else:
        pairs = [('', item) for item in value]
    line = ', '.join(key + _literal(item, scalar, -WIDTH) for key, item in pairs)
    if indent + len(line) < WIDTH - 10 or not pairs:
        return f'{brackets[0]}{line}{brackets[1]}'
    inside = indent + 2
    items = (f'{" " * inside}{key}{_literal(item, scalar, inside)}' for key, item in pairs)
    body = ',\n'.join(items)
    return f'{brackets[0]}\n{body}\n{" " * indent}{brackets[1]}'


# The command `openstack` --------------------------------------------------------


def command(request: Request, selected: str = DEFAULT_VERSION) -> str | None:
    """Return a command of osc-placement with the same effect; None if there is none.

    :param selected: the microversion that a variable selects
    """
    path, _, query = request.url.partition('?')
    for method, pattern, words in _COMMANDS:
        match = re.fullmatch(pattern, path)
        if method == request.method and match:
            try:
                found = [_quoted(word) for word in words(match, parse_qsl(query), request.body)]
            except NotSupportedError:
                return None
            if request.version != selected:
                found = ['--os-placement-api-version', request.version, *found]
            return _wrapped(['openstack', *found])
    return None


class NotSupportedError(Exception):
    """osc-placement has no option for a part of a request."""


def _quoted(word: str) -> str:
    return f'"{word}"' if '$' in word else shlex.quote(word)


def _wrapped(words: list[str]) -> str:
    """Return a command with several lines, each of which but the first starts with an option."""
    lines = ['']
    for index, word in enumerate(words):
        if word.startswith('--') and len(' '.join([lines[-1], *words[index : index + 2]])) > WIDTH:
            lines.append('   ')
        lines[-1] += f' {word}'
    return ' \\\n'.join(lines).lstrip()


Words = Iterator[str]
Query = list[tuple[str, str]]


def _create_provider(_: re.Match[str], __: Query, body: Any) -> Words:
    yield from ('resource', 'provider', 'create', body['name'])
    if 'uuid' in body:
        yield from ('--uuid', body['uuid'])
    if body.get('parent_provider_uuid'):
        yield from ('--parent-provider', body['parent_provider_uuid'])


def _set_provider(match: re.Match[str], _: Query, body: Any) -> Words:
    yield from ('resource', 'provider', 'set', match[1], '--name', body['name'])
    if body.get('parent_provider_uuid'):
        yield from ('--parent-provider', body['parent_provider_uuid'])


def _create_class(_: re.Match[str], __: Query, body: Any) -> Words:
    yield from ('resource', 'class', 'create', body['name'])


def _delete_inventory(match: re.Match[str], _: Query, __: Any) -> Words:
    yield from ('resource', 'provider', 'inventory', 'delete', match[1])
    yield from ('--resource-class', match[2])


def _list_traits(_: re.Match[str], query: Query, __: Any) -> Words:
    yield from ('trait', 'list')
    for name, value in query:
        yield from (f'--{name}',) if name == 'associated' else (f'--{name}', value)


def _set_inventories(match: re.Match[str], _: Query, body: Any) -> Words:
    yield from ('resource', 'provider', 'inventory', 'set', match[1])
    for name, inventory in body['inventories'].items():
        for field, value in inventory.items():
            label = name if field == 'total' else f'{name}:{field}'
            yield from ('--resource', f'{label}={value}')


def _set_inventory(match: re.Match[str], _: Query, body: Any) -> Words:
    yield from ('resource', 'provider', 'inventory', 'class', 'set', match[1], match[2])
    for field, value in body.items():
        if field != 'resource_provider_generation':
            yield from (f'--{field}', str(value))


def _set_traits(match: re.Match[str], _: Query, body: Any) -> Words:
    yield from ('resource', 'provider', 'trait', 'set', match[1])
    for name in body['traits']:
        yield from ('--trait', name)


def _set_aggregates(match: re.Match[str], _: Query, body: Any) -> Words:
    yield from ('resource', 'provider', 'aggregate', 'set', match[1])
    for aggregate in body['aggregates']:
        yield from ('--aggregate', aggregate)
    yield from ('--generation', str(body['resource_provider_generation']))


def _set_allocations(match: re.Match[str], _: Query, body: Any) -> Words:
    if not body['allocations']:
        raise NotSupportedError
    yield from ('resource', 'provider', 'allocation', 'set', match[1])
    for provider, allocation in body['allocations'].items():
        amounts = (f'{name}={amount}' for name, amount in allocation['resources'].items())
        yield from ('--allocation', ','.join([f'rp={provider}', *amounts]))
    for key in ('project_id', 'user_id', 'consumer_type'):
        yield from (f'--{key.replace("_", "-")}', body[key])


def _list_candidates(_: re.Match[str], query: Query, __: Any) -> Words:
    yield from ('allocation', 'candidate', 'list')
    groups: dict[str, Query] = {'': []}
    for name, value in query:
        match = _OF_GROUP.fullmatch(name)
        base, suffix = match.groups() if match else (name, '')
        groups.setdefault(suffix, []).append((base, value))
    for suffix, conditions in groups.items():
        if suffix and 'resources' not in dict(conditions):
            raise NotSupportedError
        yield from ('--group', suffix) if suffix else ()
        yield from _conditions(conditions, {'limit': '--limit', 'group_policy': '--group-policy'})


def _list_providers(_: re.Match[str], query: Query, __: Any) -> Words:
    yield from ('resource', 'provider', 'list')
    yield from _conditions(query, {'name': '--name', 'uuid': '--uuid', 'in_tree': '--in-tree'})


def _conditions(query: Query, options: Mapping[str, str]) -> Words:
    for name, value in query:
        if name in options:
            yield from (options[name], value)
        elif name == 'member_of':
            yield from ('--member-of', value.removeprefix('in:'))
        elif name == 'resources':
            for amount in value.split(','):
                yield from ('--resource', amount.replace(':', '='))
        elif name == 'required' and value.startswith('in:'):
            yield from ('--required', value.removeprefix('in:'))
        elif name == 'required':
            for trait in value.split(','):
                option = '--forbidden' if trait.startswith('!') else '--required'
                yield from (option, trait.removeprefix('!'))
        else:
            raise NotSupportedError


def _show_usages(_: re.Match[str], query: Query, __: Any) -> Words:
    values = dict(query)
    if values.keys() - {'project_id', 'user_id'}:
        raise NotSupportedError
    yield from ('resource', 'usage', 'show', values['project_id'])
    if 'user_id' in values:
        yield from ('--user-id', values['user_id'])


def _with_names(*words: str) -> Callable[[re.Match[str], Query, Any], Words]:
    """Return a function that adds the variable parts of the path to the words."""

    def command_of(match: re.Match[str], _: Query, __: Any) -> Words:
        yield from (*words, *match.groups())

    return command_of


_PROVIDER = r'/resource_providers/([^/]+)'
_CLASS = r'/resource_classes/([^/]+)'
_TRAIT = r'/traits/([^/]+)'
_OF_PROVIDER = ('resource', 'provider')
_SHOW = (*_OF_PROVIDER, 'show')
_COMMANDS = (
    ('POST', '/resource_providers', _create_provider),
    ('GET', '/resource_providers', _list_providers),
    ('GET', _PROVIDER, _with_names(*_SHOW)),
    ('PUT', _PROVIDER, _set_provider),
    ('DELETE', _PROVIDER, _with_names(*_OF_PROVIDER, 'delete')),
    ('GET', rf'{_PROVIDER}/allocations', _with_names(*_SHOW, '--allocations')),
    ('GET', rf'{_PROVIDER}/usages', _with_names(*_OF_PROVIDER, 'usage', 'show')),
    ('GET', rf'{_PROVIDER}/inventories', _with_names(*_OF_PROVIDER, 'inventory', 'list')),
    ('PUT', rf'{_PROVIDER}/inventories', _set_inventories),
    ('DELETE', rf'{_PROVIDER}/inventories', _with_names(*_OF_PROVIDER, 'inventory', 'delete')),
    ('GET', rf'{_PROVIDER}/inventories/([^/]+)', _with_names(*_OF_PROVIDER, 'inventory', 'show')),
    ('PUT', rf'{_PROVIDER}/inventories/([^/]+)', _set_inventory),
    ('DELETE', rf'{_PROVIDER}/inventories/([^/]+)', _delete_inventory),
    ('GET', rf'{_PROVIDER}/traits', _with_names(*_OF_PROVIDER, 'trait', 'list')),
    ('PUT', rf'{_PROVIDER}/traits', _set_traits),
    ('DELETE', rf'{_PROVIDER}/traits', _with_names(*_OF_PROVIDER, 'trait', 'delete')),
    ('GET', rf'{_PROVIDER}/aggregates', _with_names(*_OF_PROVIDER, 'aggregate', 'list')),
    ('PUT', rf'{_PROVIDER}/aggregates', _set_aggregates),
    ('GET', '/resource_classes', _with_names('resource', 'class', 'list')),
    ('POST', '/resource_classes', _create_class),
    ('GET', _CLASS, _with_names('resource', 'class', 'show')),
    ('PUT', _CLASS, _with_names('resource', 'class', 'set')),
    ('DELETE', _CLASS, _with_names('resource', 'class', 'delete')),
    ('GET', '/traits', _list_traits),
    ('GET', _TRAIT, _with_names('trait', 'show')),
    ('PUT', _TRAIT, _with_names('trait', 'create')),
    ('DELETE', _TRAIT, _with_names('trait', 'delete')),
    ('PUT', r'/allocations/([^/]+)', _set_allocations),
    ('GET', r'/allocations/([^/]+)', _with_names(*_OF_PROVIDER, 'allocation', 'show')),
    ('DELETE', r'/allocations/([^/]+)', _with_names(*_OF_PROVIDER, 'allocation', 'delete')),
    ('GET', '/allocation_candidates', _list_candidates),
    ('GET', '/usages', _show_usages),
)
