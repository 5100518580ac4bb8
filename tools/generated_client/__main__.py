"""Generate a client for each microversion, and use some of them in a service."""

import argparse
import os
from pathlib import Path
import sys
import tempfile

from placement.microversion import VERSIONS, of_text
from tools import web_server, with_database
from tools.generated_client import generation, use
from tools.generated_client.client import Client, MismatchError

ROOT = Path(__file__).resolve().parents[2]
# The microversions whose clients send requests: those with different forms of requests, and the
# latest one. Before 1.12, the allocations of a candidate are a list, which `use` does not support.
USED = ('1.12', '1.18', '1.22', '1.28', '1.33', '1.36', VERSIONS[-1])


def main() -> int:
    """Run all steps; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description='Generate and use clients of the API.')
    parser.add_argument(
        'versions',
        nargs='*',
        default=VERSIONS,
        help='the microversions of the documents (default: all)',
    )
    versions = parser.parse_args().versions
    with tempfile.TemporaryDirectory(prefix='placement-client-') as name:
        folder = Path(name)
        sys.path.append(name)
        try:
            for text in versions:
                generation.generate(text, folder)
            print(f'{len(versions)} clients generated without a warning')
            _use_clients([text for text in versions if text in USED], folder)
        except MismatchError as error:
            print(f'generated_client: {error}', file=sys.stderr)
            return 1
    return 0


def _use_clients(versions: list[str], folder: Path) -> None:
    port = with_database.free_port()
    environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    environment['PYTHONPATH'] = str(ROOT)
    command: list[str | Path] = [sys.executable, ROOT / 'tools/serve.py', '--inside']
    command += ['--port', str(port), '--database', folder / 'placement.db']
    with web_server.served('Placement', command, port, environment, folder):
        for text in versions:
            client = Client(generation.package(text), f'http://127.0.0.1:{port}', of_text(text))
            print(f'{text}: {use.use(client)}')


if __name__ == '__main__':
    sys.exit(main())
