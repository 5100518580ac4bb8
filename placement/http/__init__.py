"""The HTTP layer: read requests (`request`), write responses (`reply`), report errors (`errors`).

The package contains neither SQL nor domain logic. Within the package, only `errors` imports other
modules: `reply` and `request`.
"""

from collections.abc import Callable, Iterable
import re
from typing import Any
from urllib.parse import quote

# The types that PEP 3333 (WSGI) defines.
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

JSON = 'application/json'
ENVIRON_CONTEXT = 'placement.context'

# The characters to percent-encode: all except visible ASCII, and the quotation marks. A double
# quote would end a field of a log line. A single quote would end an argument in a shell.
_UNSAFE = re.compile(r'[^!#-&(-~]+')


def quoted(text: str) -> str:
    """Percent-encode the unsafe characters of a text of a client, for a log line.

    Text that is already percent-encoded is not encoded again. Therefore, an encoded query string
    has the same parameters as the original one.

    :param text: a text from a WSGI environment
    """
    return _UNSAFE.sub(_percent_encoded, text)


def _percent_encoded(match: re.Match[str]) -> str:
    # PEP 3333: the environment contains bytes decoded as latin-1.
    return quote(match[0], encoding='latin-1', errors='replace')
