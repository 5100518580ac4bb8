"""The value of the option `--listen`."""

from dataclasses import dataclass
import re

from placement.admin.failure import CannotProceedError

# A host name, an IPv4 address, or an IPv6 address in brackets; and a port.
_ADDRESS = re.compile(r'(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^:\[\]\s]+)):(?P<port>[0-9]{1,5})')
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The host name or the IP address, and the port, on which a server listens.

    :ivar port: 0 means that the system chooses a free port
    """

    host: str
    port: int

    def __str__(self) -> str:
        host = f'[{self.host}]' if ':' in self.host else self.host
        return f'{host}:{self.port}'


def parse(text: str) -> ListenAddress:
    """Return the address that a text describes.

    :raises CannotProceedError: the text is malformed
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match['port']) > _HIGHEST_PORT:
        raise CannotProceedError(
            f'{text!r} is not an address and a port to listen on, such as 127.0.0.1:9180 or '
            '[::1]:9180.'
        )
    return ListenAddress(match['ipv6'] or match['host'], int(match['port']))
