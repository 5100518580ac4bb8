"""uWSGI decodes URLs. Only the plain URL of an endpoint is served, and API paths have any form."""

import itertools
import random
import socket

from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST

PREFIX = '/placement'
# The URLs that the service must serve.
PLAIN = ('/metrics', '/metrics?a=%zz', '/healthcheck', '/healthcheck?/x')
# Texts that a server can decode to nothing or to a part of a path.
INSERTED = ('%zz/../', '/../', './', '/', '%2f', '%2e/', 'x/../', '%00', '%', '%6', '#', ';', '%3f')
SEED = 20261123
RANDOM_URLS = 150


def command(port: int) -> list[str]:
    """Return the command of uWSGI with a path prefix."""
    words = list(commands.uwsgi(port, module='placement.wsgi.api'))
    start = words.index('--module')
    mount = ['--manage-script-name', '--mount', f'{PREFIX}=placement.wsgi.api:application']
    return words[:start] + mount + words[start + 2 :]


def unusual_urls(path: str) -> list[str]:
    """Return URLs that a server can decode to the path of an endpoint."""
    whole = PREFIX + path
    urls = {whole[:i] + text + whole[i:] for i in (0, 1, 10, 11, len(whole)) for text in INSERTED}
    urls |= {f'{whole[:i]}%{ord(whole[i]):02x}{whole[i + 1 :]}' for i in range(len(whole))}
    source = random.Random(SEED)
    for _ in range(RANDOM_URLS):
        parts = [f'%{ord(one):02X}' if source.random() < 0.2 else one for one in whole]
        for _ in range(source.randrange(3)):
            parts.insert(source.randrange(len(parts) + 1), source.choice(INSERTED))
        urls.add(''.join(parts))
    return sorted(urls - {whole})


class EndpointUrlsTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve(command, {'OS_METRICS__ENABLED': 'true'})

    def send(self, url: str) -> tuple[int, bytes]:
        """Send a request with exactly this URL; return the status and the body of the response."""
        with socket.create_connection(
            ('127.0.0.1', self.worker.port), timeout=LONGEST
        ) as connection:
            connection.sendall(
                f'GET {url} HTTP/1.1\r\nHost: placement\r\nX-Auth-Token: admin\r\n'
                'X-Roles: admin\r\n\r\n'.encode()
            )
            response = connection.makefile('rb').read()
        return int(response.split()[1]), response.partition(b'\r\n\r\n')[2]

    def test_only_the_plain_url_is_served(self) -> None:
        for url in PLAIN:
            self.assertEqual(200, self.send(PREFIX + url)[0], url)
        served = []
        for url in itertools.chain(unusual_urls('/metrics'), unusual_urls('/healthcheck')):
            status, body = self.send(url)
            # uWSGI decodes some of the URLs to that of the version document.
            if status not in (400, 404) and b'"versions"' not in body:
                served.append(url)
        self.assertEqual([], served)

    def test_paths_of_the_api_are_decoded(self) -> None:
        path = '/resource_providers'
        for url in (
            path,
            '/%72esource_providers',
            f'/x/..{path}',
            f'/%zz/..{path}',
            f'{path}?name=%25',
        ):
            status, body = self.send(PREFIX + url)
            self.assertEqual((200, b'{"resource_providers":[]}'), (status, body), url)
