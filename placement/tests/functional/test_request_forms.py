"""The forms of each request in the documentation send the request of the gabbi file."""

import functools
import io
import json
import os
import shutil
import subprocess
from unittest import mock

import ddt
import openstack

from api_reference import examples
from api_reference.operations import OPERATIONS
from placement.tests import where
from placement.tests.functional import example_pages, served
from tools import request_forms

# Writes the status into the last line of the output. The options precede those of the page.
_CURL = 'curl() { command curl --silent --write-out "\\n%{http_code}" "$@"; }\n'
# A command of osc-placement can send several requests, and takes more than a second.
_COMMANDS_OF = 'guide-gpu'


record = functools.cache(example_pages.record)


def reference():
    """Return the request of the latest example of each operation of the API reference."""
    operations = (one for path in filter(None, OPERATIONS) for one in OPERATIONS[path].values())
    for operation in operations:
        latest = examples.of_operation(operation.anchor)[0]
        yield request_forms.Request(latest.method, latest.url, str(latest.version), latest.document)


@where.only_on('sqlite', reason='The API tests execute the same statements.')
@ddt.ddt
class FormsTest(served.ServedTestCase):
    def setUp(self):
        self.received = []
        super().setUp()

    def serve(self, environ, start_response):
        environ['HTTP_X_ROLES'] = 'admin,service'
        body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
        environ['wsgi.input'] = io.BytesIO(body)
        query = f'?{environ["QUERY_STRING"]}' if environ['QUERY_STRING'] else ''
        self.received.append(
            (
                environ['REQUEST_METHOD'],
                environ['PATH_INFO'] + query.replace('%21', '!'),
                # Only openstacksdk requests the versions, without this header.
                environ.get('HTTP_OPENSTACK_API_VERSION'),
                json.loads(body) if body else None,
            )
        )
        return super().serve(environ, start_response)

    def assert_sent(self, guide, send):
        """Send all requests of a page.

        :param send: sends a request, and returns the status of the response
        """
        uuids = request_forms.names(guide)
        shown = example_pages.captions(example_pages.page(guide).read_text())
        for name, request in request_forms.read(guide).items():
            caption = example_pages.caption_of(name)
            status = send(request, uuids)
            text = json.dumps([request.url, request.body])
            for variable in sorted(uuids, key=len, reverse=True):
                text = text.replace(f'${variable}', uuids[variable])
            url, body = json.loads(text)
            expected = (request.method, url, f'placement {request.version}', body)
            self.assertEqual(expected, self.received[-1], name)
            # Some of the other requests have the headers of another user.
            if caption in shown:
                self.assertEqual(record(guide)[caption].status, status, name)

    def run_shell(self, script, uuids):
        variables = {**os.environ, **uuids, **self.settings}
        variables |= {'TOKEN': 'admin', 'PLACEMENT': self.url, 'OS_PLACEMENT_API_VERSION': '1.39'}
        return subprocess.run(
            ['bash', '-c', script], env=variables, capture_output=True, text=True, check=False
        )

    @ddt.data(*example_pages.guides())
    def test_curl(self, guide):
        if shutil.which('curl') is None:
            self.skipTest('curl is not installed')

        def send(request, uuids):
            completed = self.run_shell(_CURL + request_forms.curl(request), uuids)
            return int(completed.stdout.rpartition('\n')[2])

        self.assert_sent(guide, send)

    @ddt.data(*example_pages.guides())
    def test_openstacksdk(self, guide):
        with mock.patch.dict(os.environ, self.settings):
            cloud = openstack.connect(placement_default_microversion='1.39')
        self.addCleanup(cloud.close)

        def send(request, uuids):
            names = {'placement': cloud.placement, **uuids}
            # The text is generated from a file of this tree.
            return eval(request_forms.sdk(request), names).status_code  # noqa: S307

        self.assert_sent(guide, send)

    def test_the_examples_of_the_api_reference(self):
        with mock.patch.dict(os.environ, self.settings):
            placement = openstack.connect().placement
        for request in reference():
            sent = (request.method, request.url, f'placement {request.version}', request.body)
            self.assertEqual('1.39', request.version, request.url)
            eval(request_forms.sdk(request, ''), {'placement': placement})  # noqa: S307
            self.assertEqual(sent, self.received[-1])
            self.received.clear()
            self.run_shell(request_forms.curl(request), {})
            self.assertEqual([sent], self.received)

    def test_the_command_changes_the_data_in_the_same_way(self):
        if shutil.which('openstack') is None:
            self.skipTest('python-openstackclient and osc-placement are not installed')
        uuids = request_forms.names(_COMMANDS_OF)
        for name, request in request_forms.read(_COMMANDS_OF).items():
            command = request_forms.command(request)
            if command is None:
                self.run_shell(_CURL + request_forms.curl(request), uuids)
                continue
            completed = self.run_shell(command, uuids)
            status = record(_COMMANDS_OF)[example_pages.caption_of(name)].status
            failed = completed.returncode != 0
            self.assertEqual(status >= 400, failed, (name, command, completed.stderr))
