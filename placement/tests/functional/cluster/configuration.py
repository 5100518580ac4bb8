"""The HAProxy configurations in etc/haproxy, with the addresses of a test."""

from collections.abc import Sequence
from pathlib import Path
import re

import placement

_FOLDER = Path(placement.__file__).parents[1] / 'etc' / 'haproxy'
# Settings of the machine that a test cannot use.
_OF_THE_MACHINE = re.compile(r'\s*(log|user|group|stats socket|ssl-\S+) ')


def api(port: int, servers: Sequence[int]) -> str:
    """Return the configuration of the load balancer of the API.

    :param port: the port for clients, without TLS
    :param servers: the ports of the processes, which serve Placement without a path prefix
    """
    text = _read('placement.cfg', servers)
    text = re.sub(r'bind :443 .*', f'bind 127.0.0.1:{port}', text)
    # A line "#root" replaces the line above it.
    return re.sub(r'\n.*\n( *)#root ', r'\n\1', text)


def database(port: int, nodes: Sequence[int], checks: Sequence[int]) -> str:
    """Return the configuration of the load balancer of a cluster or group with a single writer.

    :param port: the port for Placement
    :param nodes: the ports of the nodes
    :param checks: the ports that respond to the health checks
    """
    text = _read('galera.cfg', nodes).replace('bind 127.0.0.1:3306', f'bind 127.0.0.1:{port}')
    text = text.replace(' port 9200 ', ' ')
    for node, check in zip(nodes, checks, strict=True):
        text = text.replace(f'127.0.0.1:{node}', f'127.0.0.1:{node} port {check}')
    return text


def _read(name: str, servers: Sequence[int]) -> str:
    """Return a file with the ports of these servers, and without settings of the machine."""
    lines = (_FOLDER / name).read_text().splitlines(keepends=True)
    text = ''.join(line for line in lines if not _OF_THE_MACHINE.match(line))
    # Two backends can have the same servers.
    addresses = dict.fromkeys(re.findall(r'192\.0\.2\.\d+:\d+', text))
    for address, port in zip(addresses, servers, strict=True):
        text = text.replace(address, f'127.0.0.1:{port}')
    return text
