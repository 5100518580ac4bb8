"""Handlers of the usages of a resource provider and of the usages of a project."""

from collections.abc import Mapping
from typing import Any

import webob

from placement import microversion, wsgi_wrapper
from placement.http import reply, request
from placement.objects import usage
from placement.policies import usage as policies
from placement.schemas import usage as schemas


@wsgi_wrapper.PlacementWsgify
@request.check_accept(request.JSON)
def list_usages(req: webob.Request) -> webob.Response:
    """GET /resource_providers/{uuid}/usages: show the usage of each inventory."""
    request.context(req).can(policies.PROVIDER_USAGES)
    generation, usages = usage.by_provider(request.path_item(req, 'uuid'))
    document = {'resource_provider_generation': generation, 'usages': usages}
    return reply.json_reply(req, document)


@wsgi_wrapper.PlacementWsgify
@microversion.version_handler(microversion.USAGES)
@request.check_accept(request.JSON)
def get_total_usages(req: webob.Request) -> webob.Response:
    """GET /usages: show the usages of a project, or of one user in a project."""
    version = request.version(req)
    items = request.query_items(req.environ)
    # The policy rule can depend on the project, but the policy is checked before the query is
    # validated. Therefore the project is read from the unvalidated query.
    target = {key: value for key, value in items if key == 'project_id'}
    request.context(req).can(policies.TOTAL_USAGES, target)
    query = request.validate_query(items, schemas.QUERY.pick(version))
    project_id, user_id = query['project_id'], query.get('user_id')
    usages: Mapping[str, Any]
    if version < microversion.CONSUMER_TYPES:
        usages = usage.by_project(project_id, user_id)
    else:
        usages = usage.by_consumer_type(project_id, user_id, query.get('consumer_type'))
    return reply.json_reply(req, {'usages': usages})
