"""Clients lose no request while the servers reload."""

from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import signal

from testtools import content

from placement.tests import where
from placement.tests.functional.deployment import base, load
from placement.tests.functional.faults import machines
from placement.tests.waiting import wait_until

# The number of clients of each web server.
CLIENTS = 2


@where.at_night('The load takes minutes.')
class ReloadTest(base.TestCase):
    @contextlib.contextmanager
    def load(self, *servers: machines.Worker) -> Iterator[load.Load]:
        """Send requests to servers while the context is active; every request must succeed."""
        load.create_provider(self.client(servers[0]))
        clients = [self.client(server) for server in servers for _ in range(CLIENTS)]
        with load.Load(clients) as running:
            running.wait_for_more()
            yield running
            running.wait_for_more()
        self.addDetail('results', content.text_content(repr(running.results)))
        self.assertTrue(load.succeeded(running.results), running.results)

    def test_chain_reload_of_uwsgi(self) -> None:
        stack = self.stack()
        uwsgi = self.started(stack.uwsgi(processes=2))
        servers = (
            self.started(stack.nginx()),
            self.started(stack.apache('uwsgi')),
            self.started(stack.haproxy(uwsgi)),
        )
        self.haproxy().wait_until_up(1)
        log = self.folder / 'uwsgi.log'
        # uWSGI does not replace a process that is still starting.
        wait_until(lambda: log.read_text().count(' ready in ') == 2)
        with self.load(*servers):
            before = children(uwsgi.pid)
            (self.folder / 'uwsgi' / 'uwsgi.fifo').write_text('c')
            wait_until(lambda: 'chain reloading complete' in log.read_text())
            self.assertFalse(before & children(uwsgi.pid))

    def test_reload_of_mod_wsgi(self) -> None:
        apache = self.started(self.stack().apache('wsgi'))
        with self.load(apache) as running:
            before = daemons(apache.pid)
            (self.folder / 'apache-wsgi' / 'placement.wsgi').touch()
            wait_until(lambda: not before & daemons(apache.pid))
            running.wait_for_more()

        # During a graceful restart of Apache, requests can fail; after it, requests succeed.
        before = children(apache.pid)
        os.kill(apache.pid, signal.SIGUSR1)
        wait_until(lambda: not before & children(apache.pid))
        self.assertEqual(201, self.client(apache).send('PUT', '/traits/CUSTOM_ONE')[0])


def children(pid: int) -> set[int]:
    """Return the ids of the child processes of a process."""
    return {int(child) for child in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()}


def daemons(pid: int) -> set[int]:
    """Return the ids of the daemon processes of mod_wsgi."""
    return {
        child
        for child in children(pid)
        if Path(f'/proc/{child}/cmdline').read_text().startswith('(wsgi:placement)')
    }
