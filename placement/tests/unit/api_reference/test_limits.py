"""The API reference states the limits of values in words."""

import ddt
from oslotest import base

from placement.schemas import common
from tools.api_reference import limits


@ddt.ddt
class LimitsTest(base.BaseTestCase):
    @ddt.data(
        ({'type': 'integer', 'minimum': 1, 'maximum': 9}, ['From 1 to 9']),
        ({'type': 'integer', 'minimum': 1}, ['At least 1']),
        ({'type': 'integer', 'maximum': 9}, ['At most 9']),
        ({'type': 'number', 'minimum': -1e38, 'maximum': 1e38}, ['From -1e+38 to 1e+38']),
        ({'type': 'string', 'minLength': 1, 'maxLength': 255}, ['1 to 255 characters']),
        ({'type': 'string', 'maxLength': 200}, ['At most 200 characters']),
        ({'type': 'string', 'minLength': 1}, ['Not empty']),
        ({'type': 'string', 'pattern': r'^A+\Z'}, ['Pattern: `^A+$`']),
        ({'type': 'string', 'pattern': common.HYPHENATED_UUID}, []),
        ({'type': 'object', 'minProperties': 1}, ['Not empty']),
        (
            {'type': 'array', 'items': {'type': 'string'}, 'uniqueItems': True},
            ['Without duplicates'],
        ),
        (
            {'type': 'array', 'items': {'type': 'string', 'maxLength': 36}, 'minItems': 1},
            ['Not empty', 'Each item: at most 36 characters'],
        ),
        ({'type': 'boolean'}, []),
    )
    @ddt.unpack
    def test_limits(self, schema, expected):
        self.assertEqual(expected, list(limits.limits(schema)))
