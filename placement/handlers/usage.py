"""Handlers of the usages of a resource provider and of the usages of a project."""

from collections.abc import Mapping
from typing import Any

from placement import microversion
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import allocation


def list_usages(call: Call) -> Reply:
    """GET /resource_providers/{uuid}/usages: show the usage of each inventory."""
    generation, usages = allocation.usage_of_provider(call.path['uuid'])
    document = {'resource_provider_generation': generation, 'usages': usages}
    return reply.json_reply(call, document)


def get_total_usages(call: Call) -> Reply:
    """GET /usages: show the usages of a project, or of one user in a project."""
    project_id, user_id = call.query['project_id'], call.query.get('user_id')
    usages: Mapping[str, Any]
    if call.version < microversion.CONSUMER_TYPES:
        usages = allocation.usage_of_project(project_id, user_id)
    else:
        usages = allocation.usage_by_consumer_type(
            project_id, user_id, call.query.get('consumer_type')
        )
    return reply.json_reply(call, {'usages': usages})
