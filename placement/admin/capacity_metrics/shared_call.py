"""Share the result of a slow function between the threads that need it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
import threading
import time
from typing import Generic, TypeVar

T = TypeVar('T')


@dataclass(frozen=True, slots=True)
class _Call(Generic[T]):
    """A call of the function, in a thread of its own.

    :ivar started: the time of the start, by the clock of `SharedCall`
    """

    started: float
    future: Future[T] = field(default_factory=Future)


class SharedCall(Generic[T]):
    """Calls a function at most once at a time, and shares the result.

    The function is called in a thread of its own, because it may take longer than a caller can
    wait. No further thread is started until this call has ended.

    :param function: returns the result, or raises an exception
    :param keep: the number of seconds since the start of a successful call for which its result is
        returned; a failure is only returned to those who wait for the call
    :param clock: returns the current time in seconds
    """

    def __init__(
        self,
        function: Callable[[], T],
        keep: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._function = function
        self._keep = keep
        self._clock = clock
        self._lock = threading.Lock()
        self._call: _Call[T] | None = None

    def result(self, seconds: float) -> T:
        """Return the result of a running or recent call, or else of a new one.

        :param seconds: the maximum time to wait
        :raises TimeoutError: the call has not ended in this time
        :raises Exception: the function raised this exception
        """
        with self._lock:
            call = self._call
            if call is None or not self._is_usable(call):
                call = self._call = self._start()
        return call.future.result(seconds)

    def _is_usable(self, call: _Call[T]) -> bool:
        if not call.future.done():
            return True
        return call.future.exception() is None and self._clock() - call.started < self._keep

    def _start(self) -> _Call[T]:
        call: _Call[T] = _Call(self._clock())
        # A daemon thread does not delay the end of the process.
        threading.Thread(target=self._execute, args=(call,), daemon=True).start()
        return call

    def _execute(self, call: _Call[T]) -> None:
        try:
            call.future.set_result(self._function())
        except Exception as exc:
            call.future.set_exception(exc)
