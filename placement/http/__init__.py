"""The HTTP layer: read requests (`request`), write responses (`reply`), report errors (`errors`).

`log_text` encodes text of clients for the log. The package contains neither SQL nor domain logic.
Within the package, `reply` imports only `request`, and `errors` imports both of them.
"""

from collections.abc import Callable, Iterable
from typing import Any

# The types that PEP 3333 (WSGI) defines.
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
