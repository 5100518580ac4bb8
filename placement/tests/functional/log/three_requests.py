"""A program that creates the application, sends it one request, and prints the request ID.

The request is a search for allocation candidates that finds nothing. The log goes where the
configuration specifies.
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


def main() -> int:
    """Send the request; return 0 if it succeeds."""
    request = webob.Request.blank(
        PATH,
        environ={'REMOTE_ADDR': ADDRESS},
        headers={
            'X-Auth-Token': TOKEN,
            'X-Roles': 'service',
            'X-Forwarded-For': FORWARDED_FOR,
            'X-Openstack-Request-Id': GLOBAL_ID,
            'OpenStack-API-Version': 'placement 1.36',
        },
    )
    response = request.get_response(wsgi.init_application())
    # The line of the request log is written when the body is closed. WebOb reads and closes it.
    assert response.body
    print(response.headers['x-openstack-request-id'])
    return 0 if response.status_int == 200 else 1


if __name__ == '__main__':
    sys.exit(main())
