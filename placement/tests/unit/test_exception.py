"""The messages of exceptions contain the fragments that clients match.

Some clients read only the last line of a message.
"""

from typing import NamedTuple

import ddt
from oslotest import base

from placement import exception


class Case(NamedTuple):
    """An exception and the fragment of its message that a client matches."""

    error: exception.PlacementException
    fragment: str


@ddt.ddt
class FragmentsTest(base.BaseTestCase):
    @ddt.data(
        Case(exception.ResourceProviderNotFound('u'), 'No resource provider with uuid u found'),
        Case(exception.ConsumerGenerationConflict('u', None, 1), 'consumer generation conflict'),
        Case(
            exception.ResourceProviderExists('name', 'a'),
            'Conflicting resource provider name: a already exists',
        ),
        Case(
            exception.InvalidAllocation(
                *('VCPU', 'u', 'no_inventory', 'does not exist.'),
                consumer_uuid='c',
                requested=1,
                limits={},
            ),
            "Unable to allocate inventory: Inventory for 'VCPU'",
        ),
        Case(
            exception.ResourceProviderGenerationConflict('u', 1, 2),
            'Please update the generation and try again.',
        ),
        Case(exception.ResourceClassNotFound('A'), 'No such resource class A'),
        Case(
            exception.StandardResourceClass('VCPU', 'delete'),
            'Cannot delete standard resource class',
        ),
        Case(exception.UnknownResourceClasses(['A']), 'No such resource class A'),
        Case(exception.UnknownResourceClasses(['A']), 'Unknown resource class'),
        Case(exception.InventoryNotFound('A', 'u'), 'No inventory of class A for u'),
        Case(
            exception.InventoryNotFound('A', 'u', deleting=True),
            'No inventory of class A found for delete',
        ),
        Case(
            exception.InventoryInUse(['B', 'A'], 'u'),
            "update conflict: Inventory for 'A, B' on resource provider 'u' in use.",
        ),
        Case(exception.AllocationsNotFound('u'), "No allocations for consumer 'u'"),
        Case(exception.UnknownTraits(['B', 'A']), 'No such trait'),
        Case(exception.InvalidConsumerUuid('x'), "is not a 'uuid'"),
    )
    def test_fragment(self, case):
        self.assertIn(case.fragment, str(case.error).splitlines()[-1])

    def test_every_class_has_a_docstring(self):
        for name in exception.__all__:
            self.assertTrue(getattr(exception, name).__doc__, name)
