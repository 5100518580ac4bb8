"""Install Placement into a virtual environment and serve it: ``python3 tools/serve.py``.

The default configuration is for evaluation: the database is an SQLite file in the source tree,
tokens are not validated (the token is the name of the user), and the web server waitress listens on
the loopback interface.
"""

import argparse
from collections.abc import Sequence
import os
from pathlib import Path
import shlex
import sys
from typing import Any

import bootstrap

CONNECTION = 'OS_PLACEMENT_DATABASE__CONNECTION'
STRATEGY = 'OS_API__AUTH_STRATEGY'
# The demo cloud has a database of its own, so that it contains nothing else.
DATABASE, DEMO_DATABASE = (bootstrap.ROOT / name for name in ('placement.db', 'placement-demo.db'))

NEXT_STEPS = """
Placement serves requests at {url}
The database is {database}

Run these commands in another terminal:

  curl -s {url}/
  curl -s -H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement latest' \\
       {url}/resource_classes
  python3 tools/tour.py --url {url}

The tour creates providers, requests allocation candidates, and writes and deletes allocations.
To stop the server, press Ctrl-C. To start with an empty database, delete the database file.
"""

DEMO = """
{done}

These commands in another terminal say why few hosts fit, and whether a host can be taken down, and
write the cloud as a page for a browser:

  {variables}export PATH={programs}:$PATH
  placement-manage explain 'resources=VCPU:4&required=HW_CPU_X86_AVX512F'
  placement-manage drain compute-01
  placement-manage report report.html
"""


def main() -> None:
    """Create the virtual environment, then run this script again in that environment."""
    options = _parse()
    if options.inside:
        _serve(options)
        return
    python = bootstrap.prepare('service')
    os.execv(python, [str(python), __file__, '--inside', *sys.argv[1:]])


def _parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Install Placement into a virtual environment and serve it.'
    )
    parser.add_argument(
        '--host', default='127.0.0.1', help='address to listen on (default: %(default)s)'
    )
    parser.add_argument(
        '--port', type=int, default=8778, help='port to listen on (default: %(default)s)'
    )
    parser.add_argument(
        '--threads', type=int, default=8, help='number of threads (default: %(default)s)'
    )
    parser.add_argument(
        '--database',
        type=Path,
        help=f'SQLite file to use (default: {DATABASE}; with --demo: {DEMO_DATABASE})',
    )
    parser.add_argument(
        '--demo', action='store_true', help='register a small varied cloud before serving'
    )
    parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.database = options.database or (DEMO_DATABASE if options.demo else DATABASE)
    return options


def _serve(options: argparse.Namespace) -> None:
    """Serve Placement; existing environment variables override the default configuration."""
    default = f'sqlite:///{options.database.resolve()}'
    # The URL of another database can contain a password, so it is not printed.
    is_default = os.environ.setdefault(CONNECTION, default) == default
    database = default.removeprefix('sqlite:///') if is_default else f'configured by {CONNECTION}'
    os.environ.setdefault('OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP', 'true')
    strategy = os.environ.setdefault(STRATEGY, 'noauth2')

    import waitress

    from placement import wsgi

    application = wsgi.init_application()
    # The environment of the other terminal may lack the variables. The operator sets another URL.
    variables = f'export {STRATEGY}={shlex.quote(strategy)}\n  '
    if is_default:
        variables += f'export {CONNECTION}={shlex.quote(default)}\n  '
    demo = _register_demo(application, variables) if options.demo else ''
    try:
        server = waitress.create_server(
            application, host=options.host, port=options.port, threads=options.threads
        )
    except OSError as error:
        sys.exit(f'Cannot listen on {options.host}:{options.port}: {error}')
    url = f'http://{options.host}:{options.port}'
    print(NEXT_STEPS.format(url=url, database=database) + demo, flush=True)
    server.run()


def _register_demo(application: Any, variables: str) -> str:
    """Register the demo cloud, and return a text with the commands for its tools."""
    import demo

    try:
        done = demo.register_in(application)
    except demo.UnexpectedResponseError as error:
        sys.exit(f'The demo cloud cannot be registered: {error}')
    programs = shlex.quote(str(Path(sys.executable).parent))
    return DEMO.format(done=done, variables=variables, programs=programs)


if __name__ == '__main__':
    main()
