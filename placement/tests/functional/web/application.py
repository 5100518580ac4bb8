"""The application that the web servers import: it waits briefly for locks of SQLite."""

from placement import wsgi
from placement.db import sessions

sessions.SQLITE_BUSY_MILLISECONDS = 300

application = wsgi.init_application()
