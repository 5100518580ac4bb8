"""/usages: the usages of a project."""

from collections.abc import Mapping
from typing import Any

from placement import microversion
from placement.handlers.operation import Parameter, Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.objects import allocation
from placement.schemas import IDENTIFIER

# Any text that begins with `all` is accepted.
_CONSUMER_TYPE = {**IDENTIFIER, 'pattern': r'^[A-Z0-9_]+\Z|^all|^unknown\Z'}


@operation(
    'GET /usages',
    since=microversion.USAGES,
    rule=Rule(
        'placement:usages',
        'Show the total usages of a project, or of a user in a project.',
        check='rule:admin_or_project_reader_or_service_api',
        target='project_id',
    ),
    query={
        'project_id': Parameter(IDENTIFIER, required=True),
        'user_id': Parameter(IDENTIFIER),
        'consumer_type': Parameter(_CONSUMER_TYPE, since=microversion.CONSUMER_TYPES),
    },
)
def get_total_usages(call: Call) -> Reply:
    """Show the usages of a project, or of one user in a project."""
    project_id, user_id = call.query['project_id'], call.query.get('user_id')
    usages: Mapping[str, Any]
    if call.version < microversion.CONSUMER_TYPES:
        usages = allocation.usage_of_project(project_id, user_id)
    else:
        usages = allocation.usage_by_consumer_type(
            project_id, user_id, call.query.get('consumer_type')
        )
    return reply.json_reply(call, {'usages': usages})
