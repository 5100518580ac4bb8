"""Handlers of /resource_classes."""

from http import HTTPStatus

import webob

from placement import exception, microversion, validation, wsgi_wrapper
from placement.http import reply, request
from placement.objects import resource_class
from placement.policies import resource_class as policies
from placement.schemas import resource_class as schemas


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.RESOURCE_CLASSES)
@request.check_accept(request.JSON)
def list_resource_classes(req: webob.Request) -> webob.Response:
    """GET /resource_classes: list all resource classes."""
    request.context(req).can(policies.LIST)
    classes = resource_class.list_all()
    prefix = request.mount_prefix(req)
    document = {'resource_classes': [_document(one.name, prefix) for one in classes]}
    return reply.json_reply(req, document, last_modified=reply.newest(classes))


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.RESOURCE_CLASSES)
@request.require_content(request.JSON)
def create_resource_class(req: webob.Request) -> webob.Response:
    """POST /resource_classes: create a custom class."""
    request.context(req).can(policies.CREATE)
    name = request.extract_json(req, schemas.BODY)['name']
    resource_class.create(name)
    return reply.empty_reply(req, HTTPStatus.CREATED, _path(name))


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.RESOURCE_CLASSES)
@request.check_accept(request.JSON)
def get_resource_class(req: webob.Request) -> webob.Response:
    """GET /resource_classes/{name}: show one resource class."""
    request.context(req).can(policies.SHOW)
    existing = resource_class.get(request.path_item(req, 'name'))
    document = _document(existing.name, request.mount_prefix(req))
    return reply.json_reply(req, document, last_modified=reply.newest([existing]))


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(
    microversion.RESOURCE_CLASSES, microversion.RESOURCE_CLASS_PUT_CREATES.before()
)
@request.require_content(request.JSON)
def update_resource_class(req: webob.Request) -> webob.Response:
    """PUT /resource_classes/{name} before microversion 1.7: rename a custom class."""
    request.context(req).can(policies.UPDATE)
    name = request.extract_json(req, schemas.BODY)['name']
    resource_class.rename(request.path_item(req, 'name'), name)
    return reply.json_reply(req, _document(name, request.mount_prefix(req)))


@wsgi_wrapper.PlacementWsgify  # type: ignore[no-redef]  # `version_handler` keeps both functions
@microversion.version_handler(microversion.RESOURCE_CLASS_PUT_CREATES)
def update_resource_class(req: webob.Request) -> webob.Response:  # noqa: F811  # as above
    """PUT /resource_classes/{name} since microversion 1.7: ensure that a custom class exists."""
    request.context(req).can(policies.UPDATE)
    name = request.path_item(req, 'name')
    problem = validation.problem(schemas.NAME, name)
    if problem:
        raise exception.InvalidName(problem)
    created = resource_class.ensure(name)
    status = HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT
    return reply.empty_reply(req, status, _path(name))


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.RESOURCE_CLASSES)
def delete_resource_class(req: webob.Request) -> webob.Response:
    """DELETE /resource_classes/{name}: delete a custom class."""
    request.context(req).can(policies.DELETE)
    resource_class.delete(request.path_item(req, 'name'))
    return reply.empty_reply(req)


def _path(name: str) -> str:
    return f'/resource_classes/{name}'


def _document(name: str, prefix: str) -> dict[str, object]:
    return {'name': name, 'links': [{'rel': 'self', 'href': prefix + _path(name)}]}
