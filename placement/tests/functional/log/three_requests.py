"""A program that creates the application, sends it three requests, and prints their request IDs.

The requests are a search for allocation candidates that finds nothing, the creation of a resource
provider, and a claim that Placement refuses. The log goes where the configuration specifies.
"""

import sys

import webob

from placement import wsgi

QUERY = 'resources=VCPU:4&required=HW_CPU_X86_AVX2'
PATH = f'/allocation_candidates?{QUERY}'
TOKEN = 'nova:service'
ADDRESS = '192.0.2.7'
FORWARDED_FOR = '198.51.100.9'
GLOBAL_ID = 'req-0d1e2f30-4a5b-4c6d-8e7f-9a0b1c2d3e4f'
HOST = '9b0d3f8e-6c1a-4d52-8f47-2e5b7a90c1d6'
SERVER = '6f0a2c71-93de-4b58-a1e4-7d8c05f3b296'
OWNER = {'project_id': 'p', 'user_id': 'u', 'consumer_generation': None}
# The method, the path, and the body of each request, and the status of its response.
REQUESTS = (
    ('GET', PATH, None, 200),
    ('POST', '/resource_providers', {'name': 'compute-1', 'uuid': HOST}, 200),
    (
        *('PUT', f'/allocations/{SERVER}'),
        {'allocations': {HOST: {'resources': {'VGPU': 1}}}, **OWNER, 'mappings': {'': [HOST]}},
        409,
    ),
)


def main() -> int:
    """Send the requests; return 0 if they have the expected statuses."""
    application = wsgi.init_application()
    for method, path, document, expected in REQUESTS:
        body = {} if document is None else {'json_body': document}
        request = webob.Request.blank(
            path,
            method=method,
            environ={'REMOTE_ADDR': ADDRESS},
            headers={
                'X-Auth-Token': TOKEN,
                'X-Roles': 'service',
                'X-Forwarded-For': FORWARDED_FOR,
                'X-Openstack-Request-Id': GLOBAL_ID,
                'OpenStack-API-Version': 'placement 1.36',
                'Content-Type': 'application/json',
            },
            **body,
        )
        response = request.get_response(application)
        # The line of the request log is written when the body is closed. WebOb reads and closes it.
        assert response.body
        print(response.headers['x-openstack-request-id'])
        if response.status_int != expected:
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
