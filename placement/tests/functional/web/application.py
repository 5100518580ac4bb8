"""The application that the web servers import, with a short wait for SQLite locks."""

from placement import wsgi
from placement.db import connections

connections.SQLITE_BUSY_MILLISECONDS = 3_000

application = wsgi.init_application()
