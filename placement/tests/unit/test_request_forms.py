"""The forms of requests in the worked examples, which other tests send to a service."""

from oslotest import base

from tools import request_forms
from tools.request_forms import Request


def get(url):
    return Request('GET', url, '1.39', None)


class CommandTest(base.BaseTestCase):
    """osc-placement is not installed, so the commands are compared with its documentation."""

    def test_inventories(self):
        body = {
            'resource_provider_generation': 3,
            'inventories': {'VCPU': {'total': 8, 'reserved': 2}},
        }
        request = Request('PUT', '/resource_providers/$HOST/inventories', '1.39', body)
        self.assertEqual(
            'openstack resource provider inventory set "$HOST" --resource VCPU=8 \\\n'
            '    --resource VCPU:reserved=2',
            request_forms.command(request),
        )

    def test_candidates(self):
        url = '/allocation_candidates?resources=VCPU:1&required=!A,B&member_of=in:$RACK'
        self.assertEqual(
            'openstack allocation candidate list --resource VCPU=1 --forbidden A --required B \\\n'
            '    --member-of "$RACK"',
            request_forms.command(get(url)),
        )

    def test_alternative_traits(self):
        command = request_forms.command(
            get('/allocation_candidates?resources=VCPU:1&required=in:A,B')
        )
        self.assertIn('--required A,B', command)

    def test_an_earlier_microversion(self):
        request = Request('PUT', '/traits/CUSTOM_A', '1.25', None)
        self.assertEqual(
            'openstack --os-placement-api-version 1.25 trait create CUSTOM_A',
            request_forms.command(request),
        )

    def test_requests_without_a_command(self):
        for request in (
            Request('POST', '/reshaper', '1.39', {}),
            Request('POST', '/allocations', '1.39', {}),
            Request('PUT', '/allocations/$A', '1.39', {'allocations': {}}),
            get('/allocation_candidates?resources_A=VCPU:1'),
            get('/usages?project_id=PROJECT&consumer_type=INSTANCE'),
        ):
            self.assertIsNone(request_forms.command(request), request)


class FormsTest(base.BaseTestCase):
    def test_curl_expands_the_names_in_the_body(self):
        request = Request('POST', '/resource_providers', '1.39', {'uuid': '$HOST'})
        form = request_forms.curl(request)
        self.assertIn('--json @- <<END\n{"uuid": "$HOST"}\nEND', form)

    def test_curl_has_no_exclamation_mark_between_double_quotes(self):
        self.assertIn('required=%21A"', request_forms.curl(get('/resource_providers?required=!A')))

    def test_openstacksdk_has_variables_for_the_names(self):
        request = Request('PUT', '/allocations/$A', '1.38', {'$HOST': [None, 'x']})
        self.assertEqual(
            "placement.put(\n    f'/allocations/{A}',\n    microversion='1.38',\n"
            "    json={HOST: [None, 'x']},\n)",
            request_forms.sdk(request),
        )
