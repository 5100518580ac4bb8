"""Send random requests to the service: ``python -m tools.fuzz``.

Run the tool in the top directory of the source tree. It starts a private database server. For each
OpenAPI document, it starts the service under uWSGI with an empty database, creates a small cloud,
and sends random requests of the microversion of the document. Schemathesis generates the requests
and compares each response with the document. All requests are for the loopback interface.

The tool prints the number of responses by document and status. A problem is a 5xx status, a
response that the document or the declaration of the operation does not describe, or an error in the
log of the service. The tool prints each problem with a command that sends the request. The exit
status is 1 if there is a problem. With the same seed, count and code, the service receives the same
requests for a document, as long as its responses are the same.
"""

import argparse
from concurrent import futures
import multiprocessing
import signal
import sys
import unittest

import sqlalchemy as sa

from placement.microversion import VERSIONS
from tools import with_database
from tools.fuzz import service
from tools.fuzz.session import Result


def main() -> int:
    """Send the requests and return 1 if there is a problem."""
    parser = argparse.ArgumentParser(
        prog='python -m tools.fuzz', description='Send random requests to the service.'
    )
    add = parser.add_argument
    add('--engine', choices=sorted(with_database.ENGINES), default='mariadb')
    add('--count', type=int, default=2500, help='number of requests for each document')
    add('--seed', type=int, default=1, help='seed of the random numbers')
    add('--processes', type=int, default=2, help='number of documents at the same time')
    add('versions', nargs='*', metavar='VERSION', help='microversions (default: all)')
    options = parser.parse_args()
    if unknown := set(options.versions) - set(VERSIONS):
        parser.error(f'unknown microversions: {", ".join(sorted(unknown))}')
    # Convert the signal to an exception, so that the servers are stopped.
    signal.signal(signal.SIGTERM, with_database.exit_on_signal)
    try:
        with with_database.server(options.engine) as url:
            return _report(_results(options, sa.make_url(url)))
    except (with_database.ServerStartError, unittest.SkipTest) as error:
        print(f'fuzz: {error}', file=sys.stderr)
        return 1


def _results(options: argparse.Namespace, admin: sa.URL) -> dict[str, Result]:
    """Return the result of each document, by microversion."""
    versions = options.versions or VERSIONS
    context = multiprocessing.get_context('spawn')
    pool = futures.ProcessPoolExecutor(options.processes, mp_context=context)
    try:
        running = {
            pool.submit(service.fuzz, version, admin, options.count, options.seed): version
            for version in versions
        }
        results = {}
        for future in futures.as_completed(running):
            results[running[future]] = future.result()
            print(_line(running[future], future.result()), flush=True)
    finally:
        # If the tool is terminated, it waits for the running documents, which stop their services.
        pool.shutdown(cancel_futures=True)
    return {version: results[version] for version in versions}


def _line(version: str, result: Result) -> str:
    statuses = ', '.join(f'{status}: {n}' for status, n in sorted(result.by_status().items()))
    return f'{version:5} {result.requests:6} requests  {statuses}  {len(result.problems)} problems'


def _report(results: dict[str, Result]) -> int:
    total = Result()
    print()
    for version, result in results.items():
        print(_line(version, result))
        total.statuses += result.statuses
        for problem in result.problems.values():
            total.problems.setdefault((problem.operation, problem.description[:80]), problem)
            print(f'  PROBLEM {problem.operation}: {problem.description}\n  {problem.command}')
    print(_line('all', total))
    print('responses by operation and status:')
    for (operation, status), number in sorted(total.statuses.items()):
        print(f'  {operation:70} {status} {number:7}')
    return 1 if total.problems else 0


if __name__ == '__main__':
    sys.exit(main())
