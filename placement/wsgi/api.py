"""The module that a WSGI server imports: `application` is the service."""

from placement import wsgi

application = wsgi.init_application()
