"""Set Placement up and serve it on this machine: ``python3 tools/serve.py``.

The embedded default is made for a first look: a SQLite file in the working tree, no identity
service (the token is the name of the user), and waitress as the server, on loopback only.
"""

import argparse
import os
from pathlib import Path
import sys

import bootstrap

NEXT_STEPS = """
Placement serves on {url}
Its database is {database}

Try, in another terminal:

  curl -s {url}/
  curl -s -H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement latest' \\
       {url}/resource_classes
  python3 tools/tour.py --url {url}

The tour registers hosts, asks where a workload would fit, claims, and releases.
Stop the server with Ctrl-C; remove the database file to start from nothing.
"""


def main() -> None:
    options = _parse()
    if options.inside:
        _serve(options)
        return
    python = bootstrap.prepare('serve', '-e', '.[serve]')
    os.execv(python, [str(python), __file__, '--inside', *sys.argv[1:]])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Set Placement up and serve it for a first look.')
    parser.add_argument('--host', default='127.0.0.1', help='address to listen on')
    parser.add_argument('--port', type=int, default=8778, help='port to listen on')
    parser.add_argument('--threads', type=int, default=8, help='requests served at once')
    parser.add_argument(
        '--database', type=Path, default=bootstrap.ROOT / 'placement.db', help='SQLite file'
    )
    parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    return parser.parse_args()


def _serve(options: argparse.Namespace) -> None:
    """Serve from inside the virtual environment; variables that are set already win."""
    database = options.database.resolve()
    os.environ.setdefault('OS_PLACEMENT_DATABASE__CONNECTION', f'sqlite:///{database}')
    os.environ.setdefault('OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP', 'true')
    os.environ.setdefault('OS_API__AUTH_STRATEGY', 'noauth2')

    import waitress

    from placement import wsgi

    application = wsgi.init_application()
    try:
        server = waitress.create_server(
            application, host=options.host, port=options.port, threads=options.threads
        )
    except OSError as error:
        sys.exit(f'Cannot listen on {options.host}:{options.port}: {error}')
    url = f'http://{options.host}:{options.port}'
    print(NEXT_STEPS.format(url=url, database=_shown_database(database)), flush=True)
    server.run()


def _shown_database(default: Path) -> str:
    """Tell where the data lies, without the password a URL may carry."""
    if os.environ['OS_PLACEMENT_DATABASE__CONNECTION'] == f'sqlite:///{default}':
        return str(default)
    return 'the one named by OS_PLACEMENT_DATABASE__CONNECTION'


if __name__ == '__main__':
    main()
