"""Provide `application`, the WSGI application that web servers import."""

from placement.wsgi import startup

application = startup.start()
