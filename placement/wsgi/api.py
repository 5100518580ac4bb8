"""The module that a WSGI server loads: `application` is the service of this process."""

from placement import wsgi

application = wsgi.init_application()
