"""JSON documents, caching headers and URLs in responses."""

import datetime

from oslotest import base

from placement import microversion
from placement.http import reply
from placement.http.reply import Call
from placement.microversion import Version
from placement.tests.unit import edge

LATEST = microversion.MAX_VERSION


def request(version=LATEST, **more):
    return Call(edge.at(version, **more), version, {})


class Item:
    def __init__(self, created_at=None, updated_at=None):
        self.created_at = created_at
        self.updated_at = updated_at


class ReplyTest(base.BaseTestCase):
    moment = datetime.datetime(2020, 2, 3, 4, 5, 6, 700)

    def send(self, sent):
        headers = {name.lower(): value for name, value in sent.headers}
        return edge.Response(int(sent.status.split()[0]), headers, b''.join(sent.body))

    def test_json(self):
        response = self.send(reply.json_reply(request(), {'a': 1}, last_modified=self.moment))
        self.assertEqual({'a': 1}, response.json)
        self.assertEqual('application/json', response.headers['content-type'])
        self.assertEqual('Mon, 03 Feb 2020 04:05:06 GMT', response.headers['last-modified'])
        self.assertEqual('no-cache', response.headers['cache-control'])

    def test_no_caching_headers_before_1_15(self):
        response = self.send(reply.json_reply(request(version=Version(1, 14)), {}))
        self.assertNotIn('last-modified', response.headers)
        self.assertNotIn('cache-control', response.headers)

    def test_a_large_document_is_not_kept_in_memory(self):
        parts = ['"', *(['ä' * 1000] * 200), '"']
        self.patch(reply, '_LARGEST_IN_MEMORY', 1000)
        response = reply.json_text_reply(request(), lambda: iter(parts))
        self.assertNotIsInstance(response.body, list)
        chunks = list(response.body)
        self.assertEqual(''.join(parts), b''.join(chunks).decode())
        lengths = [len(chunk.decode()) for chunk in chunks]
        self.assertEqual([66_001, 66_000, 66_000, 2_001], lengths)
        self.assertIn(('Content-Length', str(sum(map(len, chunks)))), response.headers)
        self.assertEqual({}, self.send(reply.json_text_reply(request(), lambda: ['{}'])).json)

    def test_a_document_in_memory_is_one_chunk(self):
        parts = ['"', *(['ä' * 1000] * 200), '"']
        (chunk,) = reply.json_text_reply(request(), lambda: iter(parts)).body
        self.assertEqual(''.join(parts), chunk.decode())

    def test_empty(self):
        response = self.send(reply.empty_reply(request()))
        self.assertEqual((204, {'content-length': '0'}, b''), response)

    def test_location(self):
        for more, expected in (
            ({}, 'http://host/traits/A'),
            ({'SERVER_PORT': '8778'}, 'http://host:8778/traits/A'),
            ({'wsgi.url_scheme': 'https', 'SERVER_PORT': '443'}, 'https://host/traits/A'),
            ({'HTTP_HOST': 'a:1', 'SCRIPT_NAME': '/x'}, 'http://a:1/x/traits/A'),
        ):
            response = self.send(reply.empty_reply(request(**more), 201, '/traits/A'))
            self.assertEqual(expected, response.headers['location'])

    def test_links_are_encoded_like_the_location(self):
        for prefix, expected in (('/placement', '/placement'), ('/a b', '/a%20b')):
            call = request(SCRIPT_NAME=prefix)
            self.assertEqual(expected, call.mount_prefix)
            self.assertEqual(f'http://host{expected}', self.located(SCRIPT_NAME=prefix))

    def located(self, **more):
        response = self.send(reply.empty_reply(request(**more), 201, '/traits/A'))
        return response.headers['location'].removesuffix('/traits/A')

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

    def test_location_has_the_server_if_the_host_is_invalid(self):
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

    def test_location_has_http_or_https(self):
        for scheme, url in (
            ('HTTPS', 'https://a'),
            ('javascript', 'http://a'),
            ('https, http', 'http://a'),
            ('"><script>', 'http://a'),
        ):
            self.assertEqual(url, self.located(**{'HTTP_HOST': 'a', 'wsgi.url_scheme': scheme}))

    def test_location_is_ascii(self):
        response = self.send(reply.empty_reply(request(), 201, '/resource_providers/ü b'))
        self.assertEqual('http://host/resource_providers/%C3%BC%20b', response.headers['location'])

    def test_newest(self):
        later = self.moment + datetime.timedelta(days=1)
        items = [Item(self.moment, later), Item(self.moment), Item()]
        self.assertEqual(later.replace(tzinfo=datetime.UTC), reply.newest(items))

    def test_newest_without_items_is_now(self):
        before = reply.now()
        self.assertGreaterEqual(reply.newest([]), before)

    def test_pick_last_modified(self):
        aware = self.moment.replace(tzinfo=datetime.UTC)
        self.assertEqual(aware, reply.pick_last_modified(None, Item(self.moment)))
        older = Item(self.moment - datetime.timedelta(days=1))
        self.assertEqual(aware, reply.pick_last_modified(aware, older))
