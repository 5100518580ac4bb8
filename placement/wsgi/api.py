"""Provide `application`, the WSGI application that web servers import."""

from placement import wsgi

application = wsgi.init_application()
