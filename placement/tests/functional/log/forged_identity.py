"""A program that creates the application and sends it requests without a token.

The requests have the headers with which keystonemiddleware describes the user of a token.
"""

import sys

import webob

from placement import wsgi

PATHS = ('/', '', '/healthcheck', '/metrics', '/traits')
TEXT = 'forged'
HEADERS = (
    *('X-User-Id', 'X-User', 'X-User-Name', 'X-User-Domain-Id', 'X-User-Domain-Name'),
    *('X-Project-Id', 'X-Tenant-Id', 'X-Tenant', 'X-Project-Name', 'X-Tenant-Name'),
    *('X-Project-Domain-Id', 'X-Project-Domain-Name', 'X-Domain-Id', 'X-Domain-Name'),
    *('X-Roles', 'X-Role', 'OpenStack-System-Scope', 'X-Service-User-Id', 'X-Service-Roles'),
)


def main() -> int:
    """Send the requests; return 0 if each has the expected status."""
    application = wsgi.init_application()
    statuses = []
    for path in PATHS:
        request = webob.Request.blank(
            '/', environ={'PATH_INFO': path}, headers=dict.fromkeys(HEADERS, TEXT)
        )
        response = request.get_response(application)
        # The line of the request log is written when the body is closed. WebOb reads and closes it.
        assert response.body
        statuses.append(response.status_int)
    return 0 if statuses == [200, 200, 200, 200, 401] else 1


if __name__ == '__main__':
    sys.exit(main())
