"""A shared call: at most one at a time, and a result that is kept for a while."""

from concurrent import futures
import threading

from oslotest import base

from placement.admin.capacity_metrics.shared_call import SharedCall

# A wait of this length fails the test in time.
LONG = 60


class SharedCallTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.calls = 0
        self.error = None
        self.started = threading.Semaphore(0)
        self.proceed = threading.Event()
        self.proceed.set()
        self.addCleanup(self.proceed.set)

    def function(self) -> int:
        """Return the number of the call."""
        self.calls += 1
        self.started.release()
        self.proceed.wait(LONG)
        if self.error:
            raise self.error
        return self.calls

    def shared(self, keep: float) -> SharedCall[int]:
        return SharedCall(self.function, keep, lambda: self.now)

    def test_a_result_is_kept_from_the_start_of_its_call(self):
        shared = self.shared(keep=30)
        self.proceed.clear()
        with futures.ThreadPoolExecutor(1) as threads:
            first = threads.submit(shared.result, LONG)
            self.started.acquire()
            self.now = 20.0  # the call takes 20 seconds
            self.proceed.set()
            self.assertEqual(1, first.result())
        results = []
        for self.now in (20.0, 29.9, 30.0, 59.9, 60.0):
            results.append(shared.result(LONG))
        self.assertEqual([1, 1, 2, 2, 3], results)

    def test_nothing_is_kept_for_zero_seconds(self):
        shared = self.shared(keep=0)
        self.assertEqual([1, 2, 3], [shared.result(LONG) for _ in range(3)])

    def test_concurrent_callers_share_one_call(self):
        for keep in (0, 30):
            self.calls = 0
            shared = self.shared(keep)
            self.proceed.clear()
            with futures.ThreadPoolExecutor(8) as threads:
                first = threads.submit(shared.result, LONG)
                self.started.acquire()
                others = [threads.submit(shared.result, LONG) for _ in range(7)]
                # All of them wait: none has started another call.
                self.assertEqual(set(), futures.wait(others, 0.05).done)
                self.proceed.set()
                self.assertEqual([1] * 8, [caller.result() for caller in (first, *others)])

    def test_a_failure_is_shared_but_not_kept(self):
        shared = self.shared(keep=30)
        self.error = ValueError('down')
        self.assertRaises(ValueError, shared.result, LONG)
        self.assertRaises(ValueError, shared.result, LONG)
        self.error = None
        self.assertEqual(3, shared.result(LONG))
        self.assertEqual(3, shared.result(LONG))

    def test_a_call_that_hangs_is_not_repeated(self):
        shared = self.shared(keep=30)
        self.proceed.clear()
        for _ in range(5):
            self.assertRaises(TimeoutError, shared.result, 0)
        self.assertEqual(1, self.calls)
        self.proceed.set()
        self.assertEqual(1, shared.result(LONG))
