"""Handlers of /resource_classes."""

from http import HTTPStatus

from placement import microversion
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import resource_class


def list_resource_classes(call: Call) -> Reply:
    """GET /resource_classes: list all resource classes."""
    classes = resource_class.list_all()
    prefix = call.mount_prefix
    document = {'resource_classes': [_document(one.name, prefix) for one in classes]}
    return reply.json_reply(call, document, last_modified=reply.newest(classes))


def create_resource_class(call: Call) -> Reply:
    """POST /resource_classes: create a custom class."""
    name = call.body['name']
    resource_class.create(name)
    return reply.empty_reply(call, HTTPStatus.CREATED, _path(name))


def get_resource_class(call: Call) -> Reply:
    """GET /resource_classes/{name}: show one resource class."""
    existing = resource_class.get(call.path['name'])
    document = _document(existing.name, call.mount_prefix)
    return reply.json_reply(call, document, last_modified=reply.newest([existing]))


def update_resource_class(call: Call) -> Reply:
    """PUT /resource_classes/{name}: rename a custom class; since 1.7, ensure that it exists."""
    if call.version < microversion.RESOURCE_CLASS_PUT_CREATES:
        name = call.body['name']
        resource_class.rename(call.path['name'], name)
        return reply.json_reply(call, _document(name, call.mount_prefix))
    name = call.path['name']
    created = resource_class.ensure(name)
    status = HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT
    return reply.empty_reply(call, status, _path(name))


def delete_resource_class(call: Call) -> Reply:
    """DELETE /resource_classes/{name}: delete a custom class."""
    resource_class.delete(call.path['name'])
    return reply.empty_reply(call)


def _path(name: str) -> str:
    return f'/resource_classes/{name}'


def _document(name: str, prefix: str) -> dict[str, object]:
    return {'name': name, 'links': [{'rel': 'self', 'href': prefix + _path(name)}]}
