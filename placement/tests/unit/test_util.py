"""Reading requests, writing replies, the error document."""

import datetime

import ddt
from oslotest import base
import webob

from placement import errors, exception, microversion, util, wsgi_wrapper
from placement.microversion import Version
from placement.tests.unit import edge

LATEST = microversion.MAX_VERSION
ANYTHING: dict = {}


def request(body=b'', version=LATEST, **more):
    return webob.Request(edge.at(version, body=body, **more))


class Item:
    def __init__(self, created_at=None, updated_at=None):
        self.created_at = created_at
        self.updated_at = updated_at


@ddt.ddt
class ExtractJsonTest(base.BaseTestCase):
    def test_document(self):
        self.assertEqual({'a': [1]}, util.extract_json(request(b'{"a": [1]}'), ANYTHING))

    def test_last_of_repeated_keys(self):
        self.assertEqual({'a': 2}, util.extract_json(request(b'{"a": 1, "a": 2}'), ANYTHING))

    @ddt.data(
        b'',
        b'{',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}',
        b'{"a": "\xff"}',
        b'\xef\xbb\xbf{}',
        rb'{"a": "\ud800"}',
        b'[' * 2000 + b']' * 2000,
        b'{"a":' * 2000 + b'1' + b'}' * 2000,
    )
    def test_malformed(self, body):
        error = self.assertRaises(util.MalformedBody, util.extract_json, request(body), ANYTHING)
        self.assertIn('Malformed JSON', str(error))

    @ddt.data(rb'{"a": "x\u0000"}', rb'{"\u0000": 1}', rb'[[{"a": ["\u0000"]}]]')
    def test_nul(self, body):
        self.assertRaises(util.InvalidDocument, util.extract_json, request(body), ANYTHING)

    def test_an_escaped_backslash_is_no_nul(self):
        body = rb'{"a": "x\\u0000"}'
        self.assertEqual({'a': r'x\u0000'}, util.extract_json(request(body), ANYTHING))

    def test_schema(self):
        error = self.assertRaises(
            util.InvalidDocument, util.extract_json, request(b'7'), {'type': 'string'}
        )
        self.assertIn('JSON does not validate: 7 is not of type', str(error))

    def test_a_huge_offence_is_shown_in_part_and_in_one_line(self):
        body = b'["' + rb'x\n' * 100000 + b'"]'
        error = self.assertRaises(
            util.InvalidDocument, util.extract_json, request(body), {'type': 'string'}
        )
        self.assertLess(len(str(error)), 2000)
        self.assertNotIn('\n', str(error))

    def test_nesting_that_can_be_parsed_but_not_shown(self):
        body = b'[' * 1000 + b']' * 1000
        self.assertRaises(
            util.InvalidDocument, util.extract_json, request(body), {'type': 'string'}
        )

    def test_a_client_that_goes_away(self):
        class Broken:
            def read(self, length):
                raise OSError('gone')

        req = request(b'{}', **{'wsgi.input': Broken()})
        self.assertRaises(util.MalformedBody, util.extract_json, req, ANYTHING)


class QueryTest(base.BaseTestCase):
    def items(self, text):
        return util.query_items(edge.environ(QUERY_STRING=text))

    def test_items(self):
        self.assertEqual([('a', '1'), ('b', ''), ('a', 'ü 2')], self.items('a=1&b&a=%C3%BC+2'))
        self.assertEqual([], self.items(''))

    def test_semicolons_part_too(self):
        self.assertEqual([('a', '1'), ('b', '2')], self.items('a=1;b=2'))
        self.assertEqual([('a', '1;b=2')], self.items('a=1%3Bb=2'))

    def test_bytes_that_are_not_encoded(self):
        self.assertEqual([('a', 'ü')], self.items('a=Ã¼'))

    def test_undecodable(self):
        for text in ('a=%ff', 'a=\xff', '%ff=a'):
            self.assertRaises(util.InvalidQuery, self.items, text)

    def test_nul(self):
        self.assertRaises(util.InvalidQuery, self.items, 'a=%00')

    def test_an_unknown_parameter_is_named(self):
        schema = {'type': 'object', 'properties': {'a': {}}, 'additionalProperties': False}
        error = self.assertRaises(
            util.InvalidQuery, util.validate_query, [('a', '1'), ('colour', '2')], schema
        )
        self.assertIn('colour', str(error))


@ddt.ddt
class DecoratorsTest(base.BaseTestCase):
    @staticmethod
    @wsgi_wrapper.PlacementWsgify
    @util.require_content(util.JSON)
    def writes(req):
        return util.empty_reply(req)

    @staticmethod
    @wsgi_wrapper.PlacementWsgify
    @util.check_accept(util.JSON)
    def reads(req):
        return util.json_reply(req, {})

    @ddt.data(
        'application/json',
        'application/json; charset=utf-8',
        'application/json;x=y',
        'application/json;\tx=y',
        'application/json;',
        'application/json;;',
    )
    def test_content(self, content_type):
        answer = edge.call(self.writes, edge.at(LATEST, CONTENT_TYPE=content_type))
        self.assertEqual(204, answer.status)

    @ddt.data(
        '',
        'text/plain',
        'APPLICATION/JSON',
        'application/jsonx',
        'application/*',
        'application/json ; x=y',
        'application/json ;',
        'application/json,',
        'application/json\t;x=y',
        'application/json x',
        ' application/json',
        ';application/json',
    )
    def test_wrong_content(self, content_type):
        answer = edge.call(self.writes, edge.at(LATEST, CONTENT_TYPE=content_type))
        self.assertEqual(415, answer.status)
        self.assertIn(content_type or 'None', answer.error['detail'])
        self.assertIn(util.JSON, answer.error['detail'])

    def test_long_headers_are_not_cached(self):
        """A client cannot fill the memory of a worker with Accept headers."""
        edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT='text/html, */*'))
        cached = util._cached_offers.cache_info().currsize
        for count in range(50, 60):
            accept = ', '.join(['text/html', *['*/*'] * count, 'application/json'])
            self.assertEqual(200, edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT=accept)).status)
        self.assertEqual(cached, util._cached_offers.cache_info().currsize)

    @ddt.data('', 'application/json', '*/*', 'application/*', 'text/html,*/*;q=0.8', '; garbage')
    def test_accept(self, accept):
        self.assertEqual(200, edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT=accept)).status)

    @ddt.data('text/html', 'text/plain', 'application/json;q=0', 'application/xml, text/*')
    def test_wrong_accept(self, accept):
        self.assertEqual(406, edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT=accept)).status)


class ReplyTest(base.BaseTestCase):
    moment = datetime.datetime(2020, 2, 3, 4, 5, 6, 700)

    def reply(self, response):
        return edge.call(response, edge.environ())

    def test_json(self):
        answer = self.reply(util.json_reply(request(), {'a': 1}, last_modified=self.moment))
        self.assertEqual({'a': 1}, answer.json)
        self.assertEqual('application/json', answer.headers['content-type'])
        self.assertEqual('Mon, 03 Feb 2020 04:05:06 GMT', answer.headers['last-modified'])
        self.assertEqual('no-cache', answer.headers['cache-control'])

    def test_no_caching_headers_before_1_15(self):
        answer = self.reply(util.json_reply(request(version=Version(1, 14)), {}))
        self.assertNotIn('last-modified', answer.headers)
        self.assertNotIn('cache-control', answer.headers)

    def test_empty(self):
        answer = self.reply(util.empty_reply(request()))
        self.assertEqual((204, {'content-length': '0'}, b''), answer)

    def test_location(self):
        for more, expected in (
            ({}, 'http://host/traits/A'),
            ({'SERVER_PORT': '8778'}, 'http://host:8778/traits/A'),
            ({'wsgi.url_scheme': 'https', 'SERVER_PORT': '443'}, 'https://host/traits/A'),
            ({'HTTP_HOST': 'a:1', 'SCRIPT_NAME': '/x'}, 'http://a:1/x/traits/A'),
        ):
            answer = self.reply(util.empty_reply(request(**more), 201, '/traits/A'))
            self.assertEqual(expected, answer.headers['location'])

    def located(self, **more):
        answer = self.reply(util.empty_reply(request(**more), 201, '/traits/A'))
        return answer.headers['location'].removesuffix('/traits/A')

    def test_location_has_the_host_of_the_request(self):
        for host in (
            'a',
            'a_b.example.com.',
            'xn--bcher-kva.example:8778',
            '192.0.2.1:1',
            '[2001:db8::1]',
            '[2001:db8::1]:8778',
            '[::ffff:192.0.2.1]:',
            '[fe80::1%25eth0]',
        ):
            self.assertEqual(f'http://{host}', self.located(HTTP_HOST=host))

    def test_location_has_the_server_if_the_host_cannot_be_one(self):
        for host in (
            '',
            'a b',
            'a"b',
            "a'b",
            'a/b',
            'a\\b',
            'u@h',
            'a<b>',
            'a?b',
            'a#b',
            'a%20b',
            'a,b',
            'a\r\nX: y',
            'a\n',
            'a\x1b',
            'a\x7f',
            '\xe4',
            'a:b',
            'a:1:2',
            ':80',
            '2001:db8::1',
            '[::1',
            '[::g]',
        ):
            self.assertEqual('http://host', self.located(HTTP_HOST=host), host)

    def test_location_has_a_scheme_of_http(self):
        for scheme, url in (
            ('HTTPS', 'https://a'),
            ('javascript', 'http://a'),
            ('https, http', 'http://a'),
            ('"><script>', 'http://a'),
        ):
            self.assertEqual(url, self.located(**{'HTTP_HOST': 'a', 'wsgi.url_scheme': scheme}))

    def test_location_is_ascii(self):
        answer = self.reply(util.empty_reply(request(), 201, '/resource_providers/ü b'))
        self.assertEqual('http://host/resource_providers/%C3%BC%20b', answer.headers['location'])

    def test_newest(self):
        later = self.moment + datetime.timedelta(days=1)
        items = [Item(self.moment, later), Item(self.moment), Item()]
        self.assertEqual(later.replace(tzinfo=datetime.UTC), util.newest(items))

    def test_newest_of_nothing_is_now(self):
        before = util.now()
        self.assertGreaterEqual(util.newest([]), before)

    def test_pick_last_modified(self):
        aware = self.moment.replace(tzinfo=datetime.UTC)
        self.assertEqual(aware, util.pick_last_modified(None, Item(self.moment)))
        older = Item(self.moment - datetime.timedelta(days=1))
        self.assertEqual(aware, util.pick_last_modified(aware, older))


class ErrorTest(base.BaseTestCase):
    def error(self, version=LATEST, **more):
        environ = edge.at(version, **{util.ENVIRON_REQUEST_ID: 'req-1'}, **more)
        response = util.error_response(environ, 409, 'No <b>.', errors.INVENTORY_INUSE)
        return edge.call(response, environ)

    def test_json(self):
        self.assertEqual(
            {
                'status': 409,
                'title': 'Conflict',
                'detail': 'No <b>.',
                'code': 'placement.inventory.inuse',
                'request_id': 'req-1',
            },
            self.error().error,
        )

    def test_codes_came_with_1_23(self):
        self.assertNotIn('code', self.error(Version(1, 22)).error)
        self.assertIn('code', self.error(Version(1, 23)).error)

    def test_the_form_follows_accept(self):
        for accept, expected in (
            ('', 'application/json'),
            ('application/json', 'application/json'),
            ('application/*', 'application/json'),
            ('text/html', 'text/html; charset=UTF-8'),
            ('application/json, text/html', 'text/html; charset=UTF-8'),
            ('application/json, text/html;q=0.5', 'application/json'),
            ('text/plain', 'text/plain; charset=UTF-8'),
        ):
            answer = self.error(HTTP_ACCEPT=accept)
            self.assertEqual(expected, answer.headers['content-type'], accept)

    def test_html_is_escaped(self):
        self.assertIn(b'No &lt;b&gt;.', self.error(HTTP_ACCEPT='text/html').body)

    def test_head_has_no_body(self):
        self.assertEqual(b'', self.error(method='HEAD').body)


@ddt.ddt
class KindsTest(base.BaseTestCase):
    """The table from kinds of exceptions to statuses."""

    @ddt.data(
        (exception.ResourceProviderNotFound('u'), 404, 'placement.undefined_code'),
        (exception.UnknownTraits(['A']), 400, 'placement.undefined_code'),
        (exception.ConcurrentChange('x'), 409, 'placement.concurrent_update'),
        (exception.InventoryInUse(['VCPU'], 'u'), 409, 'placement.inventory.inuse'),
        (exception.PolicyNotAuthorized('rule'), 403, 'placement.undefined_code'),
        (exception.DatabaseUnavailable(), 503, 'placement.undefined_code'),
        (exception.OutcomeUnknown(), 503, 'placement.undefined_code'),
        (microversion.OutsideWindow(405), 405, 'placement.undefined_code'),
    )
    @ddt.unpack
    def test_kind(self, error, status, code):
        @wsgi_wrapper.PlacementWsgify
        def fails(req):
            raise error

        answer = edge.call(fails, edge.at(LATEST))
        self.assertEqual(status, answer.status)
        self.assertEqual(code, answer.error['code'])
        self.assertTrue(answer.error['detail'])
        self.assertEqual('1' if status == 503 else None, answer.headers.get('retry-after'))

    def test_every_exception_of_the_domain_that_a_client_can_meet_has_a_status(self):
        kinds = tuple(kind for kind, _ in wsgi_wrapper.STATUSES)
        internal = (exception.UnsuitableDatabase, exception.PlacementException, *kinds)
        for value in vars(exception).values():
            if isinstance(value, type) and issubclass(value, exception.PlacementException):
                self.assertTrue(issubclass(value, kinds) or value in internal, value)

    def test_anything_else_passes(self):
        @wsgi_wrapper.PlacementWsgify
        def fails(req):
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, edge.call, fails, edge.at(LATEST))
