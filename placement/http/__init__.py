"""HTTP: reading a request (`request`), writing a response (`reply`), and all errors (`errors`).

There is neither SQL nor domain logic here. Each module imports only those named before it.
"""

from collections.abc import Callable, Iterable
from typing import Any

# The types of PEP 3333.
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
