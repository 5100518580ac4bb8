"""Run clients of OpenStack with the service: ``tox -e clients``.

The script serves Placement with an empty SQLite database, and an identity service that accepts
every password. Then it calls each function of the clients. It fails if a function does not return
what it promises, or if a request or a response differs from the OpenAPI document of its
microversion. All requests are for the loopback interface. The last lines contain the version and
the number of requests of each client.
"""

from collections.abc import Callable
from importlib import metadata
import logging
import sys
import traceback

from tools import with_database
from tools.clients import neutron, osc, sdk
from tools.clients.cloud import Cloud, running

# Distribution -> what uses the client.
CLIENTS: dict[str, tuple[Callable[[Cloud], None], ...]] = {
    'openstacksdk': (sdk.use, sdk.check_authentication, sdk.run_functional_tests),
    'neutron-lib': (neutron.use,),
    'osc-placement': (osc.use,),
}


def main() -> int:
    """Run all clients; return 1 if there is a difference."""
    logging.disable(logging.WARNING)
    different = 0
    for name, uses in CLIENTS.items():
        requests = 0
        differences = []
        for use in uses:
            with running(with_database.free_port()) as cloud:
                differences += _differences(use, cloud)
                requests += cloud.recorder.statuses.total()
        for difference in differences:
            print(f'{name}: {difference}', file=sys.stderr)
        print(
            f'{name} {metadata.version(name)}: {requests} requests, {len(differences)} differences'
        )
        different += len(differences)
    return int(different > 0)


def _differences(use: Callable[[Cloud], None], cloud: Cloud) -> list[str]:
    """Use a client, and return how its requests and the responses differ from the documents."""
    try:
        use(cloud)
    except Exception:  # each client has exceptions of its own
        return [*cloud.recorder.differences, traceback.format_exc()]
    return cloud.recorder.differences


if __name__ == '__main__':
    sys.exit(main())
