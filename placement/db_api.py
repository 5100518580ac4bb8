"""Public functions for access to the database, implemented in `db/engine.py`.

Deployment tools, embedders and test fixtures import these names from here.
"""

from placement.db.engine import (
    configure,
    get_placement_engine,
    placement_context_manager,
    reader,
    write,
)

__all__ = ('configure', 'get_placement_engine', 'placement_context_manager', 'reader', 'write')
