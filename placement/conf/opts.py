"""The entry point of the sample generator."""

import copy

from oslo_config import cfg

from placement.conf import api, database, paths, placement, workarounds


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Give the options of the service's own groups, as oslo-config-generator wants them.

    The options are copies: the generator may change their defaults.
    """
    groups = [
        ('DEFAULT', paths.OPTS),
        ('api', api.OPTS),
        ('placement', placement.OPTS),
        ('placement_database', database.OPTS + database.SYNC_OPTS),
        ('workarounds', workarounds.OPTS),
    ]
    return [(name, copy.deepcopy(options)) for name, options in groups]
