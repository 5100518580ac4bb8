"""A cache for functions that parse request headers."""

from collections.abc import Callable
import functools
from typing import Any, TypeVar

Function = TypeVar('Function', bound=Callable[..., Any])

_ENTRIES = 256


def cache_short_texts(longest: int) -> Callable[[Function], Function]:
    """Return a decorator that caches the results of a function whose first argument is a text.

    Clients usually send a few short headers repeatedly. Results for longer texts are not cached,
    so that a client cannot fill the memory of a worker.

    :param longest: the maximum length of the text, in characters, for which results are cached
    """

    def decorator(function: Function) -> Function:
        cached = functools.lru_cache(maxsize=_ENTRIES)(function)

        @functools.wraps(function)
        def choose(text: str, *args: Any) -> Any:
            return cached(text, *args) if len(text) <= longest else function(text, *args)

        choose.cache_info = cached.cache_info  # type: ignore[attr-defined]  # lru_cache adds this attribute too
        return choose  # type: ignore[return-value]  # has the signature of the function

    return decorator
