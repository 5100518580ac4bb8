"""Runs clients of OpenStack with the service: ``tox -e clients``."""
