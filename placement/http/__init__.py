"""The HTTP layer: read requests (`request`), write responses (`reply`), report errors (`errors`).

`call` is what a handler receives, and `reply` what it returns. `log_text` encodes text of clients
for the log. The package contains neither SQL nor domain logic. Within the package, `reply` imports
only `call`, and `errors` imports `reply` and `request`.
"""

from collections.abc import Callable, Iterable
from typing import Any

# The types that PEP 3333 (WSGI) defines.
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

JSON = 'application/json'
ENVIRON_CONTEXT = 'placement.context'
