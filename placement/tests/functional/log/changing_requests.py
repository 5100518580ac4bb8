"""A program that creates the application, sends it two requests, and prints their request IDs.

The first request creates a resource provider. The second one is a claim that Placement refuses. The
log goes where the configuration specifies.
"""

import sys
from typing import Any

import webob

from placement import wsgi
from placement.http import JSON, Application
from placement.tests.functional.log.one_request import GLOBAL_ID, TOKEN

HOST = '9b0d3f8e-6c1a-4d52-8f47-2e5b7a90c1d6'
SERVER = '6f0a2c71-93de-4b58-a1e4-7d8c05f3b296'
CLAIM = {
    'allocations': {HOST: {'resources': {'VGPU': 1}}},
    'project_id': 'p',
    'user_id': 'u',
    'consumer_generation': None,
    'consumer_type': 'INSTANCE',
}


def main() -> int:
    """Send the requests; return 0 if they have the expected statuses."""
    application = wsgi.init_application()
    provider = {'name': 'compute-1', 'uuid': HOST}
    statuses = [
        send(application, 'POST', '/resource_providers', provider),
        send(application, 'PUT', f'/allocations/{SERVER}', CLAIM),
    ]
    return 0 if statuses == [200, 409] else 1


def send(application: Application, method: str, path: str, body: Any) -> int:
    """Send a request, print its ID, and return the status of the response."""
    request = webob.Request.blank(
        path,
        method=method,
        json_body=body,
        content_type=JSON,
        headers={
            'X-Auth-Token': TOKEN,
            'X-Roles': 'service',
            'X-Openstack-Request-Id': GLOBAL_ID,
            'OpenStack-API-Version': 'placement 1.38',
        },
    )
    response = request.get_response(application)
    print(response.headers['x-openstack-request-id'])
    return response.status_int


if __name__ == '__main__':
    sys.exit(main())
