"""Public functions for access to the database, implemented in `db/engine.py`.

Deployment tools, programs that embed the service, and test fixtures import this module.
"""

from placement.db.engine import (
    configure,
    get_placement_engine,
    placement_context_manager,
    read,
    read_snapshot,
    snapshot,
    write,
)

__all__ = (
    'configure',
    'get_placement_engine',
    'placement_context_manager',
    'read',
    'read_snapshot',
    'snapshot',
    'write',
)
