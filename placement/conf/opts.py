"""The options for oslo-config-generator, which writes the sample configuration file."""

from collections.abc import Sequence
import copy

from oslo_config import cfg

from placement.conf import api, database, metrics, paths, placement, workarounds


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the names and options of the service's own groups.

    The options are copies, because oslo-config-generator can change the defaults of options.
    """
    groups: list[tuple[str, Sequence[cfg.Opt]]] = [
        ('DEFAULT', paths.OPTS),
        ('api', api.OPTS),
        ('metrics', metrics.OPTS),
        ('placement', placement.OPTS),
        ('placement_database', [*database.OPTS, *database.TIMEOUT_OPTS, *database.SYNC_OPTS]),
        ('workarounds', workarounds.OPTS),
    ]
    return [(name, copy.deepcopy(list(options))) for name, options in groups]
