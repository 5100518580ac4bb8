"""The parts of `tools.perf.boots` that need no server."""

import json

from oslotest import base

from placement import validation
from placement.microversion import MAX_VERSION
from placement.schemas import allocation
from tools.perf import boots


class HttpTest(base.BaseTestCase):
    def test_a_request_without_a_body(self):
        head, _, body = boots.request('GET', '/traits').partition(b'\r\n\r\n')
        line, *headers = head.decode().split('\r\n')
        self.assertEqual('GET /traits HTTP/1.0', line)
        self.assertFalse([header for header in headers if header.startswith('Content-')])
        self.assertEqual(b'', body)

    def test_a_request_with_a_body_has_its_length_and_type(self):
        head, _, body = boots.request('PUT', '/traits/A', {'ä': 1}).partition(b'\r\n\r\n')
        self.assertEqual({'ä': 1}, json.loads(body))
        self.assertIn(f'Content-Length: {len(body)}', head.decode().split('\r\n'))
        self.assertIn('Content-Type: application/json', head.decode().split('\r\n'))

    def test_a_response(self):
        received = b'HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n{"a": "\r\n\r\n"}'
        self.assertEqual((404, b'{"a": "\r\n\r\n"}'), boots.response(received))

    def test_a_response_without_a_body(self):
        self.assertEqual((204, b''), boots.response(b'HTTP/1.1 204 No Content\r\n\r\n'))


class ClaimTest(base.BaseTestCase):
    def test_a_claim_of_a_candidate_is_valid(self):
        uuid = '6f2bb3f4-4f1c-4d0b-8e0e-0c1a5f3b7a10'
        candidate = {
            'allocations': {uuid: {'resources': {'VCPU': 1}}},
            'mappings': {'': [uuid]},
        }
        body = boots.claim(candidate, 'a project')
        self.assertEqual(candidate['allocations'], body['allocations'])
        schema = allocation.PUT.pick(MAX_VERSION)
        self.assertIsNone(validation.problem(schema, body))


class PercentileTest(base.BaseTestCase):
    def test_the_median_and_the_99th_percentile(self):
        values = [float(number) for number in range(100, 0, -1)]
        self.assertEqual(50, boots.percentile(values, 0.5))
        self.assertEqual(99, boots.percentile(values, 0.99))

    def test_few_values(self):
        self.assertEqual(0, boots.percentile([], 0.99))
        self.assertEqual(7, boots.percentile([7.0], 0.5))
        self.assertEqual(9, boots.percentile([7.0, 9.0], 0.99))
