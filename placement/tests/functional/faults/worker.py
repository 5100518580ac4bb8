"""Serves Placement on a loopback port until the process is killed; the argument is the port."""

import sys

import waitress

from placement import wsgi


def main() -> None:
    """Serve requests."""
    server = waitress.create_server(
        wsgi.init_application(), host='127.0.0.1', port=int(sys.argv[1]), threads=4
    )
    server.run()


if __name__ == '__main__':
    main()
