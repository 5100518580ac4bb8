"""Signals during the command `placement-manage export`."""

import os
import signal

from oslotest import base

from placement.cmd import transfer


class SignalTest(base.BaseTestCase):
    def test_signals_end_the_export_like_an_interruption(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            previous = signal.getsignal(number)
            with self.assertRaises(KeyboardInterrupt), transfer.stoppable():
                os.kill(os.getpid(), number)
            self.assertEqual(previous, signal.getsignal(number))
