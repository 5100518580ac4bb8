"""The conversion of rows to providers."""

from oslotest import base

from placement.candidates import model, tree_rows


class ProvidersTest(base.BaseTestCase):
    def test_values(self):
        row = (3, 'uuid', 1, 2, '[5, 7]', None, '[[0, 8, 1, 1, 4, 1, 1.5, 2]]')
        (provider,) = tree_rows.providers_of([row])
        inventory = model.ProviderInventory(0, 8, 1, 1, 4, 1, 1.5, 2)
        expected = model.Provider(3, 'uuid', 1, 2, frozenset({5, 7}), frozenset(), {0: inventory})
        self.assertEqual(expected, provider)

    def test_the_order_of_the_rows_has_no_effect(self):
        rows = [(id_, str(id_), 1, None, None, None, None) for id_ in (4, 1, 3, 2)]
        found = [provider.id for provider in tree_rows.providers_of(rows)]
        self.assertEqual([1, 2, 3, 4], found)
