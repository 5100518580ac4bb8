"""Handlers of /traits and of the traits of a resource provider."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import trait


def list_traits(call: Call) -> Reply:
    """GET /traits: list the names of all traits, or of the traits that match the filters."""
    traits = trait.list_matching(**_filters(call.query))
    return reply.json_reply(call, {'traits': _names(traits)}, last_modified=reply.newest(traits))


def get_trait(call: Call) -> Reply:
    """GET /traits/{name}: return 204 No Content if the trait exists."""
    existing = trait.get(call.path['name'])
    return reply.empty_reply(call, last_modified=reply.newest([existing]))


def put_trait(call: Call) -> Reply:
    """PUT /traits/{name}: ensure that a custom trait exists."""
    name = call.path['name']
    stored, created = trait.ensure(name)
    return reply.empty_reply(
        call,
        HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT,
        location=f'/traits/{name}',
        last_modified=reply.newest([stored]),
    )


def delete_trait(call: Call) -> Reply:
    """DELETE /traits/{name}: delete a custom trait."""
    trait.delete(call.path['name'])
    return reply.empty_reply(call)


def list_traits_for_resource_provider(call: Call) -> Reply:
    """GET /resource_providers/{uuid}/traits: list the traits of a provider."""
    generation, traits = trait.list_by_provider(call.path['uuid'])
    return _provider_reply(call, generation, traits)


def update_traits_for_resource_provider(call: Call) -> Reply:
    """PUT /resource_providers/{uuid}/traits: replace the traits of a provider."""
    generation, traits = trait.replace_on_provider(
        call.path['uuid'],
        int(call.body['resource_provider_generation']),
        call.body['traits'],
    )
    return _provider_reply(call, generation, traits)


def delete_traits_for_resource_provider(call: Call) -> Reply:
    """DELETE /resource_providers/{uuid}/traits: remove all traits from a provider."""
    trait.clear_on_provider(call.path['uuid'])
    return reply.empty_reply(call)


def _filters(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments for `trait.list_matching`. An unknown operator in `name` is ignored."""
    filters: dict[str, Any] = {}
    operator, _, operand = query.get('name', '').partition(':')
    if operator == 'in':
        filters['names'] = operand.split(',')
    elif operator == 'startswith':
        filters['prefix'] = operand
    if 'associated' in query:
        filters['associated'] = query['associated'].lower() == 'true'
    return filters


def _names(traits: Iterable[trait.Trait]) -> list[str]:
    return [one.name for one in traits]


def _provider_reply(call: Call, generation: int, traits: list[trait.Trait]) -> Reply:
    document = {'traits': _names(traits), 'resource_provider_generation': generation}
    return reply.json_reply(call, document, last_modified=reply.newest(traits))
