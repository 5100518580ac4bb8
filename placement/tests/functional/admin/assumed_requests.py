"""Makes the changes of `--assume` with requests to the API, one provider after the other."""

from typing import Any
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base

Document = dict[str, Any]


class RefusedError(Exception):
    """The API refuses a change, or an object that the change names does not exist."""


def change(test: base.TestCase, text: str) -> None:
    """Make a change.

    :raises RefusedError: the change is not possible; a part of it may be made
    """
    kind, _, rest = text.partition(':')
    if kind == 'without':
        _remove(test, _tree(test, rest))
    elif kind == 'copies':
        number, _, provider = rest.partition('*')
        originals = _tree(test, provider)
        for copy in range(1, int(number) + 1):
            _copy(test, originals, copy)
    else:
        what, _, query = rest.partition('?')
        providers = _get(test, f'/resource_providers?{query}')['resource_providers']
        if query and not providers:
            raise RefusedError
        _CHANGES[kind](test, what, [provider['uuid'] for provider in providers])


def _send(test: base.TestCase, method: str, path: str, body: Any = None) -> Document:
    response = test.send(method, path, body)
    if response.status_code >= 300:
        raise RefusedError(response.text)
    document: Document = response.json() if response.content else {}
    return document


def _get(test: base.TestCase, path: str) -> Document:
    return _send(test, 'GET', path)


# Trees ----------------------------------------------------------------------------


def _tree(test: base.TestCase, provider: str) -> list[Document]:
    """Return the providers of a tree, parents before children."""
    key = 'name'
    if len(provider) == 36:
        key, provider = 'uuid', provider.lower()
    found = _get(test, f'/resource_providers?{key}={provider}')['resource_providers']
    if not found:
        raise RefusedError
    path = f'/resource_providers?in_tree={found[0]["uuid"]}'
    listed: list[Document] = _get(test, path)['resource_providers']
    return listed


def _remove(test: base.TestCase, providers: list[Document]) -> None:
    uuids = {provider['uuid'] for provider in providers}
    for provider in providers:
        path = f'/resource_providers/{provider["uuid"]}/allocations'
        for consumer in _get(test, path)['allocations']:
            _release(test, consumer, uuids)
    for provider in reversed(providers):
        _send(test, 'DELETE', f'/resource_providers/{provider["uuid"]}')


def _release(test: base.TestCase, consumer: str, providers: set[str]) -> None:
    """Remove the allocations of a consumer on providers."""
    path = f'/allocations/{consumer}'
    # In later microversions, a consumer must have a type.
    body = test.send_ok('GET', path, version='1.37')
    rest = {uuid: one for uuid, one in body['allocations'].items() if uuid not in providers}
    response = test.send('PUT', path, {**body, 'allocations': rest}, version='1.37')
    if response.status_code == 204:
        return
    # The API refuses the other allocations, because an earlier change reduced their inventories.
    test.assertEqual(409, response.status_code, response.text)
    allocations = models.allocations
    ids = sa.select(models.resource_providers.c.id).where(
        models.resource_providers.c.uuid.in_(providers)
    )
    with db_api.get_placement_engine().begin() as conn:
        conn.execute(
            sa.delete(allocations).where(
                allocations.c.consumer_id == consumer, allocations.c.resource_provider_id.in_(ids)
            )
        )


def _copy(test: base.TestCase, originals: list[Document], number: int) -> None:
    def copied(original: str) -> str:
        return str(uuid.uuid5(uuid.UUID(original), f'copy-{number}'))

    for original in originals:
        body = {
            'uuid': copied(original['uuid']),
            'name': f'{original["name"]}-copy-{number}',
        }
        if original['parent_provider_uuid']:
            body['parent_provider_uuid'] = copied(original['parent_provider_uuid'])
        _send(test, 'POST', '/resource_providers', body)
        for key in ('inventories', 'traits', 'aggregates'):
            path = f'/resource_providers/{body["uuid"]}/{key}'
            document = _get(test, path)
            document[key] = _get(test, f'/resource_providers/{original["uuid"]}/{key}')[key]
            _send(test, 'PUT', path, document)


# Providers ------------------------------------------------------------------------


def _set(test: base.TestCase, assignment: str, providers: list[str]) -> None:
    class_name, _, field = assignment.partition('.')
    name, _, value = field.partition('=')
    if test.send('GET', f'/resource_classes/{class_name}').status_code == 404:
        raise RefusedError
    for provider in providers:
        path = f'/resource_providers/{provider}/inventories'
        document = _get(test, path)
        current = document.pop('resource_provider_generation')
        if class_name in document['inventories']:
            inventory = document['inventories'][class_name]
            number = float(value) if name == 'allocation_ratio' else int(value)
            body = {**inventory, name: number, 'resource_provider_generation': current}
            _send(test, 'PUT', f'{path}/{class_name}', body)


def _set_trait(test: base.TestCase, signed: str, providers: list[str]) -> None:
    _get(test, f'/traits/{signed[1:]}')
    _link(test, 'traits', signed, providers)


def _set_aggregate(test: base.TestCase, signed: str, providers: list[str]) -> None:
    _link(test, 'aggregates', signed, providers)


def _link(test: base.TestCase, key: str, signed: str, providers: list[str]) -> None:
    for provider in providers:
        path = f'/resource_providers/{provider}/{key}'
        body = _get(test, path)
        without = [one for one in body[key] if one != signed[1:]]
        body[key] = [*without, signed[1:]] if signed[0] == '+' else without
        _send(test, 'PUT', path, body)


_CHANGES = {'set': _set, 'trait': _set_trait, 'aggregate': _set_aggregate}
