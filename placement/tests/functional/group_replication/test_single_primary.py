"""All API processes use the primary of the group through HAProxy, which follows the primary."""

import uuid

from placement.tests import where
from placement.tests.functional.base import claim
from placement.tests.functional.faults import storm
from placement.tests.functional.group_replication import testcase
from placement.tests.waiting import wait_until


class SinglePrimary(testcase.DeploymentTestCase):
    single_writer = True

    def setUp(self):
        super().setUp()
        self.wait_until_used()

    def wait_until_used(self):
        """Wait until all API processes use the first server."""
        # New connections use the first server, also those that replace the ones of earlier tests.
        self.database_proxy.wait_until('galera/node1', up=True)
        for number in range(3):
            self.wait_until_writable(number)

    def wait_until_writable(self, number):
        """Wait until an API process grants a claim, through whichever of its connections."""
        port, provider = self.workers[number].port, self.providers[-1 - number]

        def granted():
            path = f'/allocations/{uuid.uuid4()}'
            status = storm.send(port, 'PUT', path, claim({provider: {'VCPU': 1}}))
            return status == 204 and storm.send(port, 'DELETE', path) == 204

        wait_until(granted, f'API process {number + 1} grants no claim')

    def check_change(self, change, primary):
        """Let another server become the primary under load.

        :param primary: the number of the new primary; None if the group elects one
        """

        def notice():
            self.database_proxy.wait_until('galera/node1', up=False)
            if primary is not None:
                self.database_proxy.wait_until(f'galera/node{primary}', up=True)
            self.wait_until_back()
            for number in range(3):
                self.wait_until_writable(number)

        traffic, _ = self.withstand(change, notice)
        self.heal()
        self.check(traffic)


class ClosedConnectionsTest(SinglePrimary):
    """HAProxy, with the file in etc/haproxy, closes the connections to the former primary."""

    def test_the_primary_is_killed(self):
        self.check_change(self.nodes[0].kill, None)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_the_primary_is_stopped_or_switched(self):
        """The statement of the page has a time limit for running transactions."""
        self.check_change(self.nodes[0].stop, None)
        self.wait_until_used()
        self.check_change(lambda: self.nodes[1].become_primary(1), 2)


class OpenConnectionsTest(SinglePrimary):
    """HAProxy closes no connection to a server that is not the primary any more."""

    @classmethod
    def database_configuration(cls, port, checks):
        option = ' on-marked-down shutdown-sessions'
        text = super().database_configuration(port, checks)
        assert option in text
        return text.replace(option, '')

    def test_the_primary_is_switched(self):
        """Without a time limit, the switchover can wait until Placement does not wait for locks."""
        self.check_change(self.nodes[1].become_primary, 2)
