"""The commands of osc-placement in the worked examples.

The functional test of the same name sends the other forms of the requests. It executes the commands
only if osc-placement is installed.
"""

from oslotest import base

from tools import request_forms
from tools.request_forms import Request

INVENTORIES = {'resource_provider_generation': 3, 'inventories': {'A': {'total': 8, 'reserved': 2}}}


class CommandTest(base.BaseTestCase):
    def test_commands(self):
        """They are those of the documentation of osc-placement."""
        for method, url, version, body, expected in (
            (
                *('PUT', '/resource_providers/$HOST/inventories', '1.39', INVENTORIES),
                'openstack resource provider inventory set "$HOST" --resource A=8 \\\n'
                '    --resource A:reserved=2',
            ),
            (
                *('GET', '/allocation_candidates?resources=A:1&required=!B,C', '1.39', None),
                'openstack allocation candidate list --resource A=1 --forbidden B --required C',
            ),
            (
                *('GET', '/allocation_candidates?member_of=in:$R&required=in:B,C', '1.39', None),
                'openstack allocation candidate list --member-of "$R" --required B,C',
            ),
            (
                *('PUT', '/traits/CUSTOM_A', '1.25', None),
                'openstack --os-placement-api-version 1.25 trait create CUSTOM_A',
            ),
            ('POST', '/reshaper', '1.39', {}, None),
            ('POST', '/allocations', '1.39', {}, None),
            ('PUT', '/allocations/$A', '1.39', {'allocations': {}}, None),
            ('GET', '/allocation_candidates?resources_A=VCPU:1', '1.39', None, None),
            ('GET', '/usages?project_id=P&consumer_type=INSTANCE', '1.39', None, None),
        ):
            with self.subTest(url):
                command = request_forms.command(Request(method, url, version, body))
                self.assertEqual(expected, command)
