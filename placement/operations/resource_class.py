"""The declarations of /resource_classes."""

from http import HTTPStatus

from placement import exception, microversion
from placement.handlers import resource_class as handlers
from placement.microversion import Variants
from placement.operations.operation import (
    Change,
    Operation,
    PathCheck,
    Rule,
    Success,
    bad,
    conflict,
    missing,
)
from placement.schemas import resource_class as schemas

_MISSING = missing('The resource class does not exist.')
_EXISTS = 'Another resource class has this name.'

LIST = Operation(
    method='GET',
    path='/resource_classes',
    handler=handlers.list_resource_classes,
    title='List resource classes',
    text='Lists all standard and custom resource classes.',
    since=microversion.RESOURCE_CLASSES,
    policy=Rule('placement:resource_classes:list', 'List resource classes.'),
    accepts=True,
    successes=(
        Success(status=HTTPStatus.OK, when='The resource classes.', body=schemas.RESOURCE_CLASSES),
    ),
)

CREATE = Operation(
    method='POST',
    path='/resource_classes',
    handler=handlers.create_resource_class,
    title='Create resource class',
    text='Creates a custom resource class.',
    since=microversion.RESOURCE_CLASSES,
    policy=Rule('placement:resource_classes:create', 'Create a resource class.'),
    writes=True,
    body=Variants({microversion.RESOURCE_CLASSES: schemas.BODY}),
    successes=(
        Success(
            status=HTTPStatus.CREATED, when='Placement created the resource class.', location=True
        ),
    ),
    failures=(conflict(_EXISTS),),
)

SHOW = Operation(
    method='GET',
    path='/resource_classes/{name}',
    handler=handlers.get_resource_class,
    title='Show resource class',
    text='Shows one resource class.',
    since=microversion.RESOURCE_CLASSES,
    policy=Rule('placement:resource_classes:show', 'Show a resource class.'),
    accepts=True,
    successes=(
        Success(status=HTTPStatus.OK, when='The resource class.', body=schemas.RESOURCE_CLASS),
    ),
    failures=(_MISSING,),
)

_RENAMES = microversion.RESOURCE_CLASS_PUT_CREATES.before()
_CREATES = microversion.RESOURCE_CLASS_PUT_CREATES

UPDATE = Operation(
    method='PUT',
    path='/resource_classes/{name}',
    handler=handlers.update_resource_class,
    title='Update resource class',
    text='',
    changes=(
        Change('renames a custom resource class.', until=_RENAMES),
        Change(
            'creates a custom resource class if it does not exist, and ignores the body.',
            since=_CREATES,
        ),
    ),
    since=microversion.RESOURCE_CLASSES,
    policy=Rule(
        'placement:resource_classes:update',
        'Create a resource class if it does not exist. Before 1.7, rename a resource class.',
    ),
    writes=True,
    path_check=PathCheck('name', schemas.NAME, exception.InvalidName, since=_CREATES),
    body=Variants({microversion.RESOURCE_CLASSES: schemas.BODY, _CREATES: None}),
    successes=(
        Success(
            status=HTTPStatus.OK,
            when='Placement renamed the resource class, or the name did not change.',
            body=schemas.RESOURCE_CLASS,
            until=_RENAMES,
        ),
        Success(
            status=HTTPStatus.CREATED,
            when='Placement created the resource class.',
            location=True,
            since=_CREATES,
        ),
        Success(
            status=HTTPStatus.NO_CONTENT,
            when='The resource class already exists.',
            location=True,
            since=_CREATES,
        ),
    ),
    failures=(
        bad(
            'The resource class is a standard resource class.',
            since=microversion.RESOURCE_CLASSES,
            until=_RENAMES,
        ),
        bad('The name is not a valid name for a custom resource class.', since=_CREATES),
        missing(
            'The resource class does not exist.',
            since=microversion.RESOURCE_CLASSES,
            until=_RENAMES,
        ),
        conflict(_EXISTS, since=microversion.RESOURCE_CLASSES, until=_RENAMES),
        conflict(
            'Another resource class has a name that the database treats as equal.', since=_CREATES
        ),
    ),
)

DELETE = Operation(
    method='DELETE',
    path='/resource_classes/{name}',
    handler=handlers.delete_resource_class,
    title='Delete resource class',
    text='Deletes a custom resource class.',
    since=microversion.RESOURCE_CLASSES,
    policy=Rule('placement:resource_classes:delete', 'Delete a resource class.'),
    writes=True,
    successes=(
        Success(status=HTTPStatus.NO_CONTENT, when='Placement deleted the resource class.'),
    ),
    failures=(
        bad('The resource class is a standard resource class.'),
        _MISSING,
        conflict('A resource provider has an inventory of the resource class.'),
    ),
)
