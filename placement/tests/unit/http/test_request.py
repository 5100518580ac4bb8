"""Bodies, query strings, Content-Type and Accept in requests."""

from unittest import mock

import ddt
from oslotest import base
import webob

from placement import exception, microversion, util, wsgi_wrapper
from placement.http import JSON, reply, request
from placement.operations import resource_provider
from placement.schemas import common
from placement.tests.unit import edge

LATEST = microversion.MAX_VERSION
ANYTHING: dict = {}


def make(body=b'', version=LATEST, **more):
    return webob.Request(edge.at(version, body=body, **more))


@ddt.ddt
class ExtractJsonTest(base.BaseTestCase):
    def test_document(self):
        self.assertEqual({'a': [1]}, request.extract_json(make(b'{"a": [1]}'), ANYTHING))

    def test_last_of_repeated_keys(self):
        self.assertEqual({'a': 2}, request.extract_json(make(b'{"a": 1, "a": 2}'), ANYTHING))

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
        error = self.assertRaises(request.MalformedBody, request.extract_json, make(body), ANYTHING)
        self.assertIn('Malformed JSON', str(error))

    @ddt.data(rb'{"a": "x\u0000"}', rb'{"\u0000": 1}', rb'[[{"a": ["\u0000"]}]]')
    def test_nul_is_rejected(self, body):
        self.assertRaises(request.InvalidDocument, request.extract_json, make(body), ANYTHING)

    def test_an_escaped_backslash_is_not_nul(self):
        body = rb'{"a": "x\\u0000"}'
        self.assertEqual({'a': r'x\u0000'}, request.extract_json(make(body), ANYTHING))

    def test_schema(self):
        error = self.assertRaises(
            request.InvalidDocument, request.extract_json, make(b'7'), {'type': 'string'}
        )
        self.assertIn('JSON does not validate: 7 is not of type', str(error))

    def test_a_long_violation_is_abbreviated_to_one_line(self):
        body = b'["' + rb'x\n' * 100000 + b'"]'
        error = self.assertRaises(
            request.InvalidDocument, request.extract_json, make(body), {'type': 'string'}
        )
        self.assertLess(len(str(error)), 2000)
        self.assertNotIn('\n', str(error))

    def test_nesting_too_deep_for_validation(self):
        body = b'[' * 1000 + b']' * 1000
        self.assertRaises(
            request.InvalidDocument, request.extract_json, make(body), {'type': 'string'}
        )

    def test_client_disconnects(self):
        class Disconnected:
            def read(self, length):
                raise OSError('connection reset')

        req = make(b'{}', **{'wsgi.input': Disconnected()})
        self.assertRaises(request.MalformedBody, request.extract_json, req, ANYTHING)


class QueryTest(base.BaseTestCase):
    def items(self, text):
        return request.query_items(edge.environ(QUERY_STRING=text))

    def test_items(self):
        self.assertEqual([('a', '1'), ('b', ''), ('a', 'ü 2')], self.items('a=1&b&a=%C3%BC+2'))
        self.assertEqual([], self.items(''))

    def test_semicolons_separate_parameters(self):
        self.assertEqual([('a', '1'), ('b', '2')], self.items('a=1;b=2'))
        self.assertEqual([('a', '1;b=2')], self.items('a=1%3Bb=2'))

    def test_bytes_without_percent_encoding(self):
        self.assertEqual([('a', 'ü')], self.items('a=Ã¼'))

    def test_undecodable(self):
        for text in ('a=%ff', 'a=\xff', '%ff=a'):
            self.assertRaises(exception.InvalidQuery, self.items, text)

    def test_nul_is_rejected(self):
        self.assertRaises(exception.InvalidQuery, self.items, 'a=%00')

    def test_the_error_names_an_unknown_parameter(self):
        schema = {'type': 'object', 'properties': {'a': {}}, 'additionalProperties': False}
        error = self.assertRaises(
            exception.InvalidQuery, request.validate_query, [('a', '1'), ('colour', '2')], schema
        )
        self.assertIn('colour', str(error))

    def test_texts_without_rules_are_valid(self):
        schema = resource_provider.LIST.query_schemas().pick(LATEST)
        items = [('name', ''), ('required', '!'), ('name', 'x')]
        with mock.patch.object(request.validation, 'problem') as problem:
            self.assertEqual({'name': 'x', 'required': '!'}, request.validate_query(items, schema))
        problem.assert_not_called()

    def test_other_texts_are_validated(self):
        schema = resource_provider.LIST.query_schemas().pick(LATEST)
        for items in ([('name', 'a'), ('uuid', 'b')], [('name', 'a'), ('colour', 'b')]):
            self.assertRaises(exception.InvalidQuery, request.validate_query, items, schema)

    def test_a_parameter_is_missing(self):
        schema = {'type': 'object', 'properties': {'a': common.TEXT}, 'required': ['a']}
        self.assertRaises(exception.InvalidQuery, request.validate_query, [], schema)


@ddt.ddt
class DecoratorsTest(base.BaseTestCase):
    @staticmethod
    @wsgi_wrapper.PlacementWsgify
    @request.require_content(JSON)
    def writes(req):
        return webob.Response(status=204)

    @staticmethod
    @wsgi_wrapper.PlacementWsgify
    @request.check_accept(JSON)
    def reads(req):
        return webob.Response()

    @ddt.data(
        'application/json',
        'application/json; charset=utf-8',
        'application/json;x=y',
        'application/json;\tx=y',
        'application/json;',
        'application/json;;',
    )
    def test_content(self, content_type):
        response = edge.call(self.writes, edge.at(LATEST, CONTENT_TYPE=content_type))
        self.assertEqual(204, response.status)

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
        response = edge.call(self.writes, edge.at(LATEST, CONTENT_TYPE=content_type))
        self.assertEqual(415, response.status)
        self.assertIn(content_type or 'None', response.error['detail'])
        self.assertIn(JSON, response.error['detail'])

    @ddt.data('', 'application/json', '*/*', 'application/*', 'text/html,*/*;q=0.8', '; garbage')
    def test_accept(self, accept):
        self.assertEqual(200, edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT=accept)).status)

    @ddt.data('text/html', 'text/plain', 'application/json;q=0', 'application/xml, text/*')
    def test_wrong_accept(self, accept):
        self.assertEqual(406, edge.call(self.reads, edge.at(LATEST, HTTP_ACCEPT=accept)).status)


class FacadeTest(base.BaseTestCase):
    def test_util_exports_the_documented_names(self):
        self.assertIs(request.check_accept, util.check_accept)
        self.assertIs(request.extract_json, util.extract_json)
        self.assertIs(request.require_content, util.require_content)
        self.assertIs(reply.pick_last_modified, util.pick_last_modified)
