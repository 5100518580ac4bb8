"""Handlers of /traits and of the traits of a resource provider."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import webob

from placement import exception, microversion, validation, wsgi_wrapper
from placement.http import reply, request
from placement.objects import trait
from placement.policies import trait as policies
from placement.schemas import trait as schemas


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
@request.check_accept(request.JSON)
def list_traits(req: webob.Request) -> webob.Response:
    """GET /traits: list the names of all traits, or of the traits that match the filters."""
    request.context(req).can(policies.LIST)
    query = request.validate_query(request.query_items(req.environ), schemas.QUERY)
    traits = trait.list_matching(**_filters(query))
    return reply.json_reply(req, {'traits': _names(traits)}, last_modified=reply.newest(traits))


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
def get_trait(req: webob.Request) -> webob.Response:
    """GET /traits/{name}: return 204 No Content if the trait exists."""
    request.context(req).can(policies.SHOW)
    existing = trait.get(request.path_item(req, 'name'))
    return reply.empty_reply(req, last_modified=reply.newest([existing]))


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
def put_trait(req: webob.Request) -> webob.Response:
    """PUT /traits/{name}: ensure that a custom trait exists."""
    request.context(req).can(policies.UPDATE)
    name = request.path_item(req, 'name')
    problem = validation.problem(schemas.NAME, name)
    if problem:
        raise exception.InvalidName(problem)
    stored, created = trait.ensure(name)
    return reply.empty_reply(
        req,
        HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT,
        location=f'/traits/{name}',
        last_modified=reply.newest([stored]),
    )


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
def delete_trait(req: webob.Request) -> webob.Response:
    """DELETE /traits/{name}: delete a custom trait."""
    request.context(req).can(policies.DELETE)
    trait.delete(request.path_item(req, 'name'))
    return reply.empty_reply(req)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
@request.check_accept(request.JSON)
def list_traits_for_resource_provider(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/traits: list the traits of a provider."""
    request.context(req).can(policies.PROVIDER_LIST)
    generation, traits = trait.list_by_provider(request.path_item(req, 'uuid'))
    return _provider_reply(req, generation, traits)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
@request.require_content(request.JSON)
def update_traits_for_resource_provider(req: webob.Request) -> webob.Response:
    """PUT /resource_providers/{uuid}/traits: replace the traits of a provider."""
    request.context(req).can(policies.PROVIDER_UPDATE)
    data = request.extract_json(req, schemas.PUT_TRAITS)
    generation, traits = trait.replace_on_provider(
        request.path_item(req, 'uuid'),
        int(data['resource_provider_generation']),
        data['traits'],
    )
    return _provider_reply(req, generation, traits)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.TRAITS)
def delete_traits_for_resource_provider(req: webob.Request) -> webob.Response:
    """DELETE /resource_providers/{uuid}/traits: remove all traits from a provider."""
    request.context(req).can(policies.PROVIDER_DELETE)
    trait.clear_on_provider(request.path_item(req, 'uuid'))
    return reply.empty_reply(req)


def _filters(query: dict[str, str]) -> dict[str, Any]:
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


def _provider_reply(
    req: webob.Request, generation: int, traits: list[trait.Trait]
) -> webob.Response:
    document = {'traits': _names(traits), 'resource_provider_generation': generation}
    return reply.json_reply(req, document, last_modified=reply.newest(traits))
