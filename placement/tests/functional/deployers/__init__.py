"""Runs Placement as deployment tools configure it (``tox -e deployers``)."""
