"""The text of the metrics, in the formats of prometheus_client."""

import gzip
import re

import ddt
from hypothesis import given, settings
from hypothesis import strategies as st
from oslotest import base
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from placement.admin.capacity_metrics import exposition
from placement.admin.capacity_metrics.exposition import Page
from placement.admin.capacity_metrics.model import (
    OPTIONAL,
    Cloud,
    Drains,
    ProjectUsage,
    Provider,
    ProviderInventory,
)
from placement.capacity import MAX_INT, Inventory
from placement.tests.properties import REPEATABLE, examples

INVENTORY = ProviderInventory(
    'host-1', 'VCPU', Inventory(total=16, reserved=1, allocation_ratio=1.5), used=7, generation=42
)
CLOUD = Cloud(
    (INVENTORY,),
    providers=3,
    consumers=2,
    allocations=5,
    details=(Provider('host-1', 'u1', 'host-1', disabled=True), Provider('n', 'u2', 'r', False)),
    aggregates=(('host-1', 'a'),),
    projects=(ProjectUsage('shop', 'VCPU', 7),),
    headroom=(('small', 12),),
    drains=Drains(checked=120, drainable=118),
)
TEXT = """\
# HELP placement_up Whether the exporter could read the database of Placement.
# TYPE placement_up gauge
placement_up 1.0
# HELP placement_providers Resource providers.
# TYPE placement_providers gauge
placement_providers 3.0
# HELP placement_consumers Consumers that have allocations.
# TYPE placement_consumers gauge
placement_consumers 2.0
# HELP placement_allocations Allocations, each of one consumer, resource provider and resource class.
# TYPE placement_allocations gauge
placement_allocations 5.0
# HELP openstack_placement_resource_total Total amount of a resource class that a resource provider has.
# TYPE openstack_placement_resource_total gauge
openstack_placement_resource_total{hostname="host-1",resourcetype="VCPU"} 16.0
# HELP openstack_placement_resource_reserved Amount of a resource class that is reserved on a resource provider.
# TYPE openstack_placement_resource_reserved gauge
openstack_placement_resource_reserved{hostname="host-1",resourcetype="VCPU"} 1.0
# HELP openstack_placement_resource_allocation_ratio Allocation ratio of a resource class on a resource provider.
# TYPE openstack_placement_resource_allocation_ratio gauge
openstack_placement_resource_allocation_ratio{hostname="host-1",resourcetype="VCPU"} 1.5
# HELP openstack_placement_resource_usage Amount of a resource class that is allocated on a resource provider.
# TYPE openstack_placement_resource_usage gauge
openstack_placement_resource_usage{hostname="host-1",resourcetype="VCPU"} 7.0
# HELP openstack_placement_resource_generation Generation of the resource provider.
# TYPE openstack_placement_resource_generation gauge
openstack_placement_resource_generation{hostname="host-1",resourcetype="VCPU"} 42.0
# HELP placement_resource_capacity Capacity of a resource class on a resource provider: (total - reserved) * allocation_ratio, truncated to an integer.
# TYPE placement_resource_capacity gauge
placement_resource_capacity{hostname="host-1",resourcetype="VCPU"} 22.0
# HELP placement_provider_info A resource provider: its UUID, the name of its root provider, and whether the root is disabled.
# TYPE placement_provider_info gauge
placement_provider_info{disabled="true",hostname="host-1",root="host-1",uuid="u1"} 1.0
placement_provider_info{disabled="false",hostname="n",root="r",uuid="u2"} 1.0
# HELP placement_provider_aggregate An aggregate of a resource provider.
# TYPE placement_provider_aggregate gauge
placement_provider_aggregate{aggregate="a",hostname="host-1"} 1.0
# HELP placement_project_usage Amount of a resource class that the consumers of a project use.
# TYPE placement_project_usage gauge
placement_project_usage{project="shop",resourcetype="VCPU"} 7.0
# HELP placement_headroom Claims of a query that fit in addition to the present ones.
# TYPE placement_headroom gauge
placement_headroom{query="small"} 12.0
# HELP placement_trees_checked Provider trees with allocations that were checked for a drain.
# TYPE placement_trees_checked gauge
placement_trees_checked 120.0
# HELP placement_trees_drainable Provider trees with allocations whose consumers fit elsewhere.
# TYPE placement_trees_drainable gauge
placement_trees_drainable 118.0
"""  # noqa: E501
OPENMETRICS = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'


def samples(text, parse=parser.text_string_to_metric_families):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@ddt.ddt
class PageTest(base.BaseTestCase):
    def test_the_text(self):
        result = Page(CLOUD).render()
        self.assertEqual(TEXT, result.body.decode())
        self.assertEqual('text/plain; version=0.0.4; charset=utf-8', result.content_type)
        self.assertIsNone(result.encoding)

    def test_metrics_that_are_left_out(self):
        for name in OPTIONAL:
            text = Page(CLOUD, without=[name]).render().body.decode()
            kept = [line for line in TEXT.splitlines() if name not in re.split('[ {]', line)]
            self.assertEqual(kept, text.splitlines())
        self.assertEqual(TEXT.count('# TYPE ') - 1, len(OPTIONAL))

    def test_openmetrics(self):
        result = Page(CLOUD).render(OPENMETRICS)
        self.assertTrue(result.content_type.startswith('application/openmetrics-text; version=1.0'))
        found = samples(result.body.decode(), openmetrics_parser.text_string_to_metric_families)
        self.assertEqual(samples(TEXT), found)

    def test_gzip(self):
        result = Page(CLOUD).render(accept_encoding='br, gzip;q=0.8')
        self.assertEqual('gzip', result.encoding)
        self.assertEqual(TEXT, gzip.decompress(result.body).decode())

    def test_without_the_database(self):
        for accept in ('', OPENMETRICS):
            text = Page(None).render(accept).body.decode()
            self.assertEqual({('placement_up',): 0}, samples(text.replace('# EOF\n', '')))
            self.assertEqual(1, text.count('# TYPE '))

    def test_an_empty_cloud_has_all_metrics_but_no_inventory(self):
        text = Page(Cloud((), 0, 0, 0)).render().body.decode()
        self.assertEqual(TEXT.count('# TYPE '), text.count('# TYPE '))
        self.assertEqual(
            {
                ('placement_up',): 1,
                ('placement_providers',): 0,
                ('placement_consumers',): 0,
                ('placement_allocations',): 0,
            },
            samples(text),
        )

    @ddt.data(
        'application/openmetrics-text;version=x',
        'application/openmetrics-text;version=1.x',
        'text/plain;version=x',
        'text/html, */*',
        ';;,=,',
    )
    def test_an_accept_header_that_is_not_understood(self, accept):
        self.assertEqual(TEXT, Page(CLOUD).render(accept).body.decode())

    @settings(REPEATABLE, max_examples=examples(40))
    @given(st.text(), st.integers(0, MAX_INT), st.floats(0, 3.4e38))
    def test_any_name_and_value(self, name, total, ratio):
        inventory = Inventory(total, allocation_ratio=ratio)
        one = ProviderInventory(name, 'CUSTOM_A', inventory, MAX_INT + 1, 0)
        page = Page(Cloud((one,), 1, 0, 0))
        for accept, parse in (
            ('', parser.text_string_to_metric_families),
            (OPENMETRICS, openmetrics_parser.text_string_to_metric_families),
        ):
            found = samples(page.render(accept).body.decode(), parse)
            self.assertEqual(
                [total, ratio, MAX_INT + 1, float(int(inventory.capacity))],
                [
                    found[metric, name, 'CUSTOM_A']
                    for metric in (
                        'openstack_placement_resource_total',
                        'openstack_placement_resource_allocation_ratio',
                        'openstack_placement_resource_usage',
                        'placement_resource_capacity',
                    )
                ],
            )

    def test_the_text_of_each_format_is_rendered_once(self):
        page = Page(CLOUD)
        for arguments in (('', ''), ('', 'gzip'), (OPENMETRICS, ''), (OPENMETRICS, 'gzip')):
            self.assertIs(page.render(*arguments), page.render(*arguments))

    def test_the_number_of_kept_texts_is_bounded(self):
        page = Page(CLOUD)
        for number in range(20):
            page.render(f'application/openmetrics-text;version=1.{number}')
        self.assertEqual(exposition._REPRESENTATIONS, len(page._rendered))
