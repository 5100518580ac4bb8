"""Run clients of OpenStack with the service: ``tox -e clients``.

For each client, the script starts a process. It serves Placement with an empty SQLite database, and
an identity service that accepts every password. Then it calls each function of the client. The
script fails if a function does not return what it promises, or if a request or a response differs
from the OpenAPI document of its microversion. All requests are for the loopback interface. The
output contains the version and the number of requests of each client, and the clients that are not
installed.
"""

import argparse
from concurrent import futures
import multiprocessing
import sys

from tools.clients import runs


def main() -> int:
    """Run all installed clients; return 1 if there is a difference."""
    parser = argparse.ArgumentParser(description='Run clients of OpenStack with the service.')
    parser.add_argument(
        '--require',
        nargs='+',
        choices=runs.CLIENTS,
        default=[],
        metavar='CLIENT',
        help='clients that must be installed (default: run those that are installed)',
    )
    required = parser.parse_args().require
    different = 0
    for name in runs.CLIENTS:
        version = runs.installed(name)
        if version is None:
            print(f'{name} is not installed: install it with pip', flush=True)
            different += name in required
            continue
        requests, differences = _use_in_process(name)
        for difference in differences:
            print(f'{name}: {difference}', file=sys.stderr)
        result = f'{requests} requests, {len(differences)} differences'
        print(f'{name} {version}: {result}', flush=True)
        different += len(differences)
    return int(different > 0)


def _use_in_process(name: str) -> tuple[int, list[str]]:
    """Use a client in a process of its own.

    Clients register their options in the global configuration of oslo.config, and some options of
    two clients have the same name. The process is forked, because this one imported the service.
    """
    context = multiprocessing.get_context('fork')
    with futures.ProcessPoolExecutor(1, context) as process:
        return process.submit(runs.use, name).result()


if __name__ == '__main__':
    sys.exit(main())
