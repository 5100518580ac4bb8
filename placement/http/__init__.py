"""The HTTP layer: read requests (`request`), write responses (`reply`), report errors (`errors`).

The package contains neither SQL nor domain logic. Within the package, only `errors` imports other
modules: `reply` and `request`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from placement import trail

# The types that PEP 3333 (WSGI) defines.
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

JSON = 'application/json'
ENVIRON_CONTEXT = 'placement.context'


def quoted(text: str) -> str:
    """Percent-encode the unsafe characters of a text of a client, for a log line.

    :param text: a text from a WSGI environment
    """
    # PEP 3333: the environment contains bytes decoded as latin-1.
    return trail.quoted(text, 'latin-1')
