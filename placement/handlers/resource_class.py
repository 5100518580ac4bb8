"""/resource_classes."""

from http import HTTPStatus

from placement import exception, microversion
from placement.handlers.operation import PathCheck, Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import Variants
from placement.objects import resource_class
from placement.schemas import CUSTOM_NAME, closed

_BODY = closed({'name': CUSTOM_NAME})


@operation(
    'GET /resource_classes',
    since=microversion.RESOURCE_CLASSES,
    rule=Rule('placement:resource_classes:list', 'List resource classes.'),
)
def list_resource_classes(call: Call) -> Reply:
    """List all resource classes."""
    classes = resource_class.list_all()
    prefix = call.mount_prefix
    document = {'resource_classes': [_document(one.name, prefix) for one in classes]}
    return reply.json_reply(call, document, last_modified=reply.newest(classes))


@operation(
    'POST /resource_classes',
    since=microversion.RESOURCE_CLASSES,
    rule=Rule('placement:resource_classes:create', 'Create a resource class.'),
    body=_BODY,
)
def create_resource_class(call: Call) -> Reply:
    """Create a custom class."""
    name = call.body['name']
    resource_class.create(name)
    return reply.empty_reply(call, HTTPStatus.CREATED, _path(name))


@operation(
    'GET /resource_classes/{name}',
    since=microversion.RESOURCE_CLASSES,
    rule=Rule('placement:resource_classes:show', 'Show a resource class.'),
)
def get_resource_class(call: Call) -> Reply:
    """Show one resource class."""
    existing = resource_class.get(call.path['name'])
    document = _document(existing.name, call.mount_prefix)
    return reply.json_reply(call, document, last_modified=reply.newest([existing]))


@operation(
    'PUT /resource_classes/{name}',
    since=microversion.RESOURCE_CLASSES,
    rule=Rule(
        'placement:resource_classes:update',
        'Create a resource class if it does not exist. Before 1.7, rename a resource class.',
    ),
    path_check=PathCheck(
        'name',
        CUSTOM_NAME,
        exception.InvalidName,
        since=microversion.RESOURCE_CLASS_PUT_CREATES,
    ),
    body=Variants(
        {
            microversion.RESOURCE_CLASSES: _BODY,
            microversion.RESOURCE_CLASS_PUT_CREATES: None,
        }
    ),
)
def update_resource_class(call: Call) -> Reply:
    """Rename a custom class; since 1.7, ensure that it exists."""
    if call.version < microversion.RESOURCE_CLASS_PUT_CREATES:
        name = call.body['name']
        resource_class.rename(call.path['name'], name)
        return reply.json_reply(call, _document(name, call.mount_prefix))
    name = call.path['name']
    created = resource_class.ensure(name)
    status = HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT
    return reply.empty_reply(call, status, _path(name))


@operation(
    'DELETE /resource_classes/{name}',
    since=microversion.RESOURCE_CLASSES,
    rule=Rule('placement:resource_classes:delete', 'Delete a resource class.'),
)
def delete_resource_class(call: Call) -> Reply:
    """Delete a custom class."""
    resource_class.delete(call.path['name'])
    return reply.empty_reply(call)


def _path(name: str) -> str:
    return f'/resource_classes/{name}'


def _document(name: str, prefix: str) -> dict[str, object]:
    return {'name': name, 'links': [{'rel': 'self', 'href': prefix + _path(name)}]}
