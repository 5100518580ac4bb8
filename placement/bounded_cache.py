"""A cache for functions of request headers."""

from collections.abc import Callable
import functools
from typing import Any, TypeVar

Function = TypeVar('Function', bound=Callable[..., Any])

_ENTRIES = 256


def cache_short_texts(longest: int) -> Callable[[Function], Function]:
    """Return a decorator that caches the results of a function of a text.

    Clients send a few short headers repeatedly. Long texts are not cached, so that the memory
    that a client can make a worker allocate stays bounded.

    :param longest: length in characters of the longest first argument whose result is cached
    """

    def decorator(function: Function) -> Function:
        cached = functools.lru_cache(maxsize=_ENTRIES)(function)

        @functools.wraps(function)
        def choose(text: str, *args: Any) -> Any:
            return cached(text, *args) if len(text) <= longest else function(text, *args)

        choose.cache_info = cached.cache_info  # type: ignore[attr-defined]  # as lru_cache has it
        return choose  # type: ignore[return-value]  # has the signature of the function

    return decorator
