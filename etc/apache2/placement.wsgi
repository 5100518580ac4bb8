"""The script that mod_wsgi imports. "touch" this file to reload the processes of Placement."""

from placement.wsgi.api import application  # noqa: F401  # mod_wsgi calls it
