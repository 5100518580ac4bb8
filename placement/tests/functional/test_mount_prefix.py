"""The URLs in responses, below a prefix and behind proxies."""

from oslotest import base

from placement import deploy
from placement.tests import where
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures import placement as placement_fixture
from placement.tests.unit import edge


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class LocationTest(base.BaseTestCase):
    """The headers of a request from which the URLs are made."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        service = self.useFixture(placement_fixture.PlacementFixture(use_intercept=False))
        config = service.conf_fixture
        config.config(group='oslo_middleware', enable_proxy_headers_parsing=True)
        self.application = deploy.loadapp(config.conf)

    def location(self, path: str = '/traits/CUSTOM_A', **more: str) -> str:
        token = {'HTTP_X_AUTH_TOKEN': 'admin', 'HTTP_OPENSTACK_API_VERSION': 'placement latest'}
        environ = edge.environ('PUT', path, **token, **more)
        return edge.call(self.application, environ).headers['location']

    def assert_base(self, expected: str, **more: str) -> None:
        self.assertEqual(f'{expected}/traits/CUSTOM_A', self.location(**more), more)

    def test_the_server_and_the_prefix(self) -> None:
        for more, expected in (
            ({}, 'http://host'),
            ({'SERVER_PORT': '8778'}, 'http://host:8778'),
            ({'wsgi.url_scheme': 'https', 'SERVER_PORT': '443'}, 'https://host'),
            ({'HTTP_HOST': 'a:1', 'SCRIPT_NAME': '/x'}, 'http://a:1/x'),
            ({'SCRIPT_NAME': '/a b'}, 'http://host/a%20b'),
            ({'SCRIPT_NAME': '/\xc3\xbc'}, 'http://host/%C3%BC'),
        ):
            self.assert_base(expected, **more)

    def test_the_host_of_the_request(self) -> None:
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
            self.assert_base(f'http://{host}', HTTP_HOST=host)
        # An invalid host is ignored.
        characters = ' "\'/\\@<?#,\x1b\x7f\xe4'
        for host in (
            *(f'a{character}b' for character in characters),
            *(
                '',
                'a%20b',
                'a\r\nX: y',
                'a\n',
                'a:b',
                'a:1:2',
                ':80',
                '2001:db8::1',
                '[::1',
                '[::g]',
            ),
        ):
            self.assert_base('http://host', HTTP_HOST=host)

    def test_the_scheme(self) -> None:
        for scheme, url in (
            ('HTTPS', 'https://a'),
            ('javascript', 'http://a'),
            ('https, http', 'http://a'),
            ('"><script>', 'http://a'),
        ):
            self.assert_base(url, **{'HTTP_HOST': 'a', 'wsgi.url_scheme': scheme})

    def test_headers_of_a_proxy(self) -> None:
        for headers, expected in (
            (
                {'HTTP_X_FORWARDED_HOST': 'a"><script>', 'HTTP_X_FORWARDED_PROTO': 'https'},
                'https://host:80',
            ),
            ({'HTTP_FORWARDED': 'host=u@h;proto=https'}, 'https://host:80'),
            (
                {'HTTP_X_FORWARDED_HOST': 'cloud.example.com', 'HTTP_X_FORWARDED_PROTO': 'x:'},
                'http://cloud.example.com',
            ),
            (
                {'HTTP_X_FORWARDED_HOST': 'elsewhere', 'HTTP_X_FORWARDED_PREFIX': '/mount'},
                'http://elsewhere/mount',
            ),
        ):
            self.assert_base(expected, HTTP_HOST='here', **headers)
