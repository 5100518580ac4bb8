"""Request IDs, the request log, and status 500 for unexpected exceptions."""

import logging
import re
import shlex
from unittest import mock

import fixtures
from hypothesis import given
from hypothesis import strategies as st
from oslo_context import context
from oslotest import base

from placement import exception, fault_wrap, grammar, microversion, requestlog
from placement.tests.properties import REPEATABLE
from placement.tests.unit import edge

_ID = r'^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
_GLOBAL = 'req-11111111-2222-3333-4444-555555555555'


class RequestLogTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.requestlog', logging.DEBUG))
        self.received = {}
        self.application = requestlog.RequestLog(self._inside)

    def _inside(self, environ, start_response):
        self.received = dict(environ)
        return edge.ok(environ, start_response)

    def send(self, **more):
        return edge.call(self.application, edge.environ(**more))

    def clock(self, *seconds):
        """Replace the clock by one that returns these values, and fails after the last one."""
        clock = mock.Mock(side_effect=seconds)
        self.useFixture(fixtures.MonkeyPatch('time.perf_counter', clock))

    def test_a_global_id_is_kept_and_not_returned(self):
        for text in (_GLOBAL, '', 'x', f'{_GLOBAL}\n', _GLOBAL.upper(), f'{_GLOBAL}0'):
            response = self.send(HTTP_X_OPENSTACK_REQUEST_ID=text)
            self.assertRegex(response.headers['x-openstack-request-id'], _ID)
            self.assertNotEqual(_GLOBAL, response.headers['x-openstack-request-id'])
            kept = self.received.get('openstack.global_request_id')
            self.assertEqual(_GLOBAL if text == _GLOBAL else None, kept)

    def test_the_context_of_the_previous_request_is_replaced(self):
        context.RequestContext(user_id='user', request_id='req-old')
        response = self.send()
        self.assertEqual(
            response.headers['x-openstack-request-id'], context.get_current().request_id
        )
        self.assertIsNone(context.get_current().user_id)

    def test_line(self):
        self.clock(100.25, 101.5)
        self.send(
            path='/a b\n',
            SCRIPT_NAME='/mount',
            QUERY_STRING='x=%0a',
            REMOTE_ADDR='192.0.2.1',
            **{microversion.ENVIRON_KEY: microversion.Version(1, 7)},
        )
        first, last = self.log.output.splitlines()
        self.assertEqual('Starting request: 192.0.2.1 "GET /mount/a%20b%0A?x=%0a"', first)
        self.assertEqual(
            '192.0.2.1 "GET /mount/a%20b%0A?x=%0a" status: 200 len: 2 microversion: 1.7 '
            'time: 1.250000',
            last,
        )
        self.clock(1.0, 1.5)
        self.send()
        self.assertIn('microversion: -', self.log.output)

    def respond(self, application):
        """Return the response of an application before the server has sent it."""
        return requestlog.RequestLog(application)(edge.environ(), lambda *_: None)

    def test_the_line_is_written_after_the_response(self):
        logging.getLogger('placement.requestlog').setLevel(logging.INFO)
        # The clock is not read after the start of the response.
        self.clock(7.0, 7.000125)
        response = self.respond(edge.ok)
        self.assertEqual([b'ok'], list(response))
        self.assertEqual('', self.log.output)

        response.close()
        self.assertRegex(self.log.output, r' time: 0\.000125\n$')

    def test_the_line_has_the_context_of_its_request(self):
        written = []
        handler = logging.Handler()
        handler.emit = lambda _record: written.append(context.get_current().user_id)
        self.useFixture(fixtures.LogHandler(handler, 'placement.requestlog', logging.INFO))

        def application(environ, start_response):
            context.RequestContext(user_id='own')
            return edge.ok(environ, start_response)

        response = self.respond(application)
        context.RequestContext(user_id='next')
        response.close()
        self.assertEqual('own', written[-1])

    def test_the_body_is_closed_before_the_line(self):
        body = mock.MagicMock()
        body.close.side_effect = lambda: self.assertNotIn('status: 200', self.log.output)

        def application(_environ, start_response):
            start_response('200 OK', [])
            return body

        self.respond(application).close()
        body.close.assert_called_once_with()
        self.assertIn('status: 200', self.log.output)

        body.close.side_effect = OSError
        response = self.respond(application)
        self.assertRaises(OSError, response.close)
        self.assertEqual(2, self.log.output.count('status: 200'))

    def test_an_exception(self):
        """There is a line if the response has started."""

        def starts_and_fails(_environ, start_response):
            start_response('200 OK', [])
            raise LookupError

        self.assertRaises(LookupError, self.respond, mock.Mock(side_effect=LookupError))
        self.assertNotIn('status:', self.log.output)
        self.assertRaises(LookupError, self.respond, starts_and_fails)
        self.assertIn('status: 200', self.log.output)

    def test_the_line_describes_the_response_that_was_sent(self):
        def application(environ, start_response):
            start_response('200 OK', [])
            start_response('500 Internal Server Error', [], (None, None, None))
            return []

        self.respond(application).close()
        self.assertNotIn('status: 200', self.log.output)
        self.assertIn('status: 500', self.log.output)

    def test_without_the_line_no_time_is_measured(self):
        self.clock()
        logging.getLogger('placement.requestlog').setLevel(logging.WARNING)
        self.assertEqual(200, self.send().status)
        self.assertEqual('', self.log.output)

    def test_successful_health_checks_are_logged_at_debug(self):
        logging.getLogger('placement.requestlog').setLevel(logging.INFO)
        self.send(path='/healthcheck')
        self.assertEqual('', self.log.output)
        self.application = requestlog.RequestLog(
            lambda _, start_response: start_response('503 Service Unavailable', []) or []
        )
        self.send(path='/healthcheck')
        self.assertIn('"GET /healthcheck" status: 503', self.log.output)

    def test_slow_requests(self):
        logging.getLogger('placement.requestlog').setLevel(logging.WARNING)
        self.application = requestlog.RequestLog(self._inside, slow_seconds=2)
        self.clock(10.0, 12.0, 20.0, 22.1, 30.0, 33.5)
        self.send(path='/traits')
        self.assertEqual('', self.log.output)
        self.send(path='/traits')
        self.send(path='/a b\n', QUERY_STRING='name=x')
        self.assertEqual(
            [
                'Slow request: "GET /traits" took 2.1 seconds',
                'Slow request: "GET /a%20b%0A?name=x" took 3.5 seconds',
            ],
            self.log.output.splitlines(),
        )

    def test_unprintable_text_is_percent_encoded(self):
        for text, written in (
            ('a=\x1b[31m', 'a=%1B[31m'),
            ('a=1\r\nforged', 'a=1%0D%0Aforged'),
            ('a="b c"', 'a=%22b%20c%22'),
            ('a=\xc3\xbc', 'a=%C3%BC'),
        ):
            self.send(SCRIPT_NAME=text, QUERY_STRING=text, REQUEST_METHOD=text, REMOTE_ADDR=text)
            for line in self.log.output.splitlines()[-2:]:
                self.assertTrue(line.isascii() and line.isprintable(), line)
                self.assertIn(f'{written} "{written} ', line)
                self.assertIn(f'/?{written}"', line)

    def queries(self, query: str) -> list[str]:
        """Return the query strings in the lines of a request."""
        self.log.reset_output()
        self.send(QUERY_STRING=query)
        lines = self.log.output.splitlines()
        self.assertEqual(2, len(lines))
        return [re.search(r' "GET /\?(.*)"( |$)', line).group(1) for line in lines]

    def test_encoded_queries_are_not_changed(self):
        query = 'name=a%20b%C3%BC%1b&resources=VCPU:1,M:2&in=%2F/;x=(~!*)@$[]|\\^`{}<>#'
        self.assertEqual([query] * 2, self.queries(query))

    @REPEATABLE
    @given(st.text(st.characters(max_codepoint=255), min_size=1))
    def test_any_query(self, query):
        """A web server can put any character of latin-1 into the environment."""
        for written in self.queries(query):
            self.assertTrue(written.isascii() and written.isprintable(), written)
            self.assertEqual([written], shlex.split(f"'{written}'"))
            self.assertEqual([written] * 2, self.queries(written))
            self.assertEqual(items(query), items(written))


def items(query):
    """Return the names and values of the query parameters, or the error in the query."""
    try:
        return grammar.parse_query_string(query)
    except exception.InvalidQuery as error:
        return str(error)


class FaultWrapTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.fault_wrap'))

    @staticmethod
    def _fails(environ, start_response):
        raise ValueError('secret SQL')

    def test_exc_info_is_for_a_response_that_has_started(self):
        """If a call of start_response passes exc_info, uWSGI does not send the body."""
        calls = []

        def start_response(status, headers, *args):
            calls.append((status, args))

        def starts_and_fails(environ, start_response):
            start_response('200 OK', [])
            raise ValueError('late')

        fault_wrap.FaultWrapper(self._fails)(edge.environ(), start_response)
        self.assertEqual([('500 Internal Server Error', ())], calls)

        calls.clear()
        fault_wrap.FaultWrapper(starts_and_fails)(edge.environ(), start_response)
        (_, first), (status, second) = calls
        self.assertEqual(((), '500 Internal Server Error'), (first, status))
        self.assertIs(ValueError, second[0][0])
