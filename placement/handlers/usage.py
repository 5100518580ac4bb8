"""The usages of a resource provider."""

from placement.handlers.operation import Rule, operation
from placement.http import reply
from placement.http.reply import Call, Reply
from placement.microversion import MIN_VERSION
from placement.objects import allocation


@operation(
    'GET /resource_providers/{uuid}/usages',
    since=MIN_VERSION,
    rule=Rule('placement:resource_providers:usages', 'Show the usages of a resource provider.'),
)
def list_usages(call: Call) -> Reply:
    """Show the usage of each inventory."""
    generation, usages = allocation.usage_of_provider(call.path['uuid'])
    document = {'resource_provider_generation': generation, 'usages': usages}
    return reply.json_reply(call, document)
