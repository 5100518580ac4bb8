"""Send random requests to the application: ``python -m tools.hostile``.

Run the tool in the top directory of the source tree. With ``--kind hostile``, any part of a request
that a client controls can be invalid. With ``--kind valid``, the tool sends valid queries of up to
8 KB. With ``--kind expensive``, it fills the database with the large cloud of `expensive_searches`,
and sends searches of up to 1 MiB. The application runs without a web server, in a process that
generates the requests.

Runs with the same database system, kind, seed and count send the same requests. The output shows
the memory of the process, the status codes, the slowest requests and the defective responses. The
exit status is 1 if a response is defective, for example if its status is 5xx.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
import faulthandler
import heapq
import itertools
import logging
from pathlib import Path
import random
import sys
import time
import traceback

from placement.tests import wsgi_client
from placement.tests.functional.invalid_requests import generated, responses
from placement.tests.waiting import LONGEST
from placement.tests.wsgi_client import Request, Response
from tools import expensive_searches, with_database
from tools.perf import service

# Hostile requests can delete rows of the test cloud. After this number of requests, the missing
# rows are created again.
RESTORE_INTERVAL = 1000
SLOWEST = 10
SHOWN_CHARACTERS = 2000


class Driver:
    """Sends requests to the application of this process and counts the responses."""

    def __init__(self, url: str) -> None:
        self._errors = _ErrorLog()
        logging.basicConfig(level=logging.INFO, handlers=[self._errors])
        self._application = service.Service(url).application
        self._documents: dict[str, dict[str, int]] = {}  # GET responses since the last write
        self.sent = 0
        self.statuses: Counter[int] = Counter()
        self.slowest: list[tuple[float, int, str]] = []
        self.defects: list[str] = []

    def restore_cloud(self) -> None:
        """Create the missing rows of the test cloud; requests for existing rows fail harmlessly."""
        for request in generated.cloud():
            self._respond(request)
        self._documents.clear()

    def generation(self, uuid: str) -> int:
        """Return the generation of a provider."""
        return int(self._read(f'/resource_providers/{uuid}').get('generation') or 0)

    def consumer_generation(self, uuid: str) -> int | None:
        """Return the generation of a consumer, or None if the consumer does not exist."""
        return self._read(f'/allocations/{uuid}').get('consumer_generation')

    def _read(self, path: str) -> dict[str, int]:
        if path not in self._documents:
            self._documents[path] = self._respond(Request('GET', path)).json()
        return self._documents[path]

    def _respond(self, request: Request) -> Response:
        # A request without a response ends the run, with the stack of each thread.
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        try:
            variables = request.variables()
            return wsgi_client.respond(self._application, variables, request.body)
        except Exception:  # A web server would respond with status 500.
            return Response(500, {}, traceback.format_exc().encode())
        finally:
            faulthandler.cancel_dump_traceback_later()

    def send(self, request: Request, only_valid: bool) -> None:
        """Send a request and check the response.

        :param only_valid: whether to treat any status except 200 OK as a defect
        """
        begin = time.perf_counter()
        response = self._respond(request)
        seconds = time.perf_counter() - begin
        self.sent += 1
        self.statuses[response.status] += 1
        text = repr(request)[:SHOWN_CHARACTERS]
        heapq.heappush(self.slowest, (seconds, self.sent, text))
        if len(self.slowest) > SLOWEST:
            heapq.heappop(self.slowest)
        errors = self._errors.take()
        defect = responses.defect(response, request.method) or errors
        if not defect and only_valid and response.status != 200:
            defect = 'a valid query failed'
        if defect:
            body = response.content[:SHOWN_CHARACTERS].decode(errors='replace')
            self.defects.append(f'{defect}: {response.status} {body}\n{errors}\n  {text}')
        if request.method != 'GET' and response.status < 300:
            self._documents.clear()


class _ErrorLog(logging.Handler):
    """A log handler that formats every record like a log file, and collects the errors."""

    def __init__(self) -> None:
        super().__init__()
        self._formatter = logging.Formatter('%(asctime)s %(levelname)s [%(name)s] %(message)s')
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Format a record; an exception in the formatter counts as an error of the service, too."""
        try:
            text = self._formatter.format(record)
            text.encode()
        except Exception:
            self._texts.append(f'log record: {traceback.format_exc()}')
            return
        if record.levelno >= logging.ERROR:
            self._texts.append(text)

    def take(self) -> str:
        """Return the end of the text of all errors since the previous call."""
        text, self._texts = '\n'.join(self._texts), []
        return text[-4000:]


def main() -> int:
    """Send the requests and return 1 if a response is defective."""
    options = _parse()
    try:
        with service.databases(options.engine) as create_database:
            url = create_database('hostile')
            if options.kind == 'expensive':
                service.in_new_process(expensive_searches.load, url)
            return int(service.in_new_process(_run, options, url))
    except with_database.ServerStartError as error:
        print(f'hostile: {error}', file=sys.stderr)
        return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.hostile', description='Send random requests to the application.'
    )
    add = parser.add_argument
    add('--engine', choices=service.ENGINES, default='sqlite', help='database system to start')
    add('--kind', choices=('hostile', 'valid', 'expensive'), default='hostile')
    add('--count', type=int, default=20_000, help='number of requests')
    add('--seconds', type=float, default=float('inf'), help='time limit in seconds')
    add('--seed', type=int, default=1, help='seed of the random numbers')
    return parser.parse_args()


def _run(options: argparse.Namespace, url: str) -> int:
    driver = Driver(url)
    print(f'{options.engine}, {options.kind} requests, seed {options.seed}')
    print(f'at the start: {_memory()}', flush=True)
    if options.kind != 'expensive':
        driver.restore_cloud()
    begin = time.monotonic()
    for request in itertools.islice(_requests(options, driver), options.count):
        driver.send(request, only_valid=options.kind == 'valid')
        seconds = time.monotonic() - begin
        if driver.sent % RESTORE_INTERVAL == 0:
            rate = driver.sent / seconds
            print(f'after {driver.sent}: {_memory()}, {rate:.0f} requests/s', flush=True)
            if options.kind == 'hostile':
                driver.restore_cloud()
        if seconds > options.seconds:
            break
    print(f'{driver.sent} requests in {time.monotonic() - begin:.0f} s')
    print('status: ' + ', '.join(f'{key}: {n}' for key, n in sorted(driver.statuses.items())))
    for took, number, text in sorted(driver.slowest, reverse=True):
        print(f'  {took * 1000:8.1f} ms  request {number}: {text[:200]}')
    for defect in driver.defects[:20]:
        print(f'DEFECT {defect}')
    print(f'{len(driver.defects)} defective responses; at the end: {_memory()}')
    return 1 if driver.defects else 0


def _requests(options: argparse.Namespace, driver: Driver) -> Iterator[Request]:
    rng = random.Random(f'{options.kind} {options.seed}')
    generator = generated.Generator(rng, driver)
    while True:
        if options.kind == 'valid':
            yield generated.valid_query(rng)
        elif options.kind == 'expensive':
            yield expensive_searches.request(rng)
        else:
            yield generator.request()


def _memory() -> str:
    pages = int(Path('/proc/self/statm').read_text().split()[1])
    return f'{pages / 256:.0f} MiB resident, peak {service.peak_mib():.0f} MiB'


if __name__ == '__main__':
    sys.exit(main())
