"""The grammar of the values of query parameters."""

from oslotest import base

from placement import exception, grammar

A = '0a8aa2a4-1f8b-4f9c-9b1a-0d0b8f7d0c01'
B = '0A8AA2A41F8B4F9C9B1A0D0B8F7D0C02'


class ParseResourcesTest(base.BaseTestCase):
    def test_items(self):
        self.assertEqual({'VCPU': 2, 'DISK_GB': 10}, grammar.parse_resources('VCPU:2,DISK_GB:10'))

    def test_the_last_amount_of_a_class_applies(self):
        self.assertEqual({'VCPU': 2}, grammar.parse_resources('VCPU:9,VCPU:2'))

    def test_integer_syntax(self):
        for text, amount in (('1_0', 10), ('+1', 1), (' 1 ', 1), ('007', 7)):
            self.assertEqual({'VCPU': amount}, grammar.parse_resources(f'VCPU:{text}'))

    def test_class_names_are_literal(self):
        self.assertEqual({' VCPU': 1}, grammar.parse_resources(' VCPU:1'))

    def test_amounts_have_no_upper_limit(self):
        self.assertEqual({'VCPU': 10**30}, grammar.parse_resources('VCPU:1' + '0' * 30))

    def test_invalid_values(self):
        for value in (
            '', ',', 'VCPU', 'VCPU:', 'VCPU:1,', 'VCPU:1:2', 'VCPU:0', 'VCPU:-1', 'VCPU:1.0',
            'VCPU:x', 'VCPU:' + '1' * 5000,
        ):  # fmt: skip
            self.assertRaises(exception.BadQueryValue, grammar.parse_resources, value)

    def test_the_error_names_the_item(self):
        error = self.assertRaises(
            exception.BadQueryValue, grammar.parse_resources, 'VCPU:1,DISK_GB:many'
        )
        self.assertIn('DISK_GB:many', str(error))


class ParseRequiredTest(base.BaseTestCase):
    def test_names(self):
        required, forbidden = grammar.parse_required(
            'A, B ,!C,!!D,! !E'.replace('! !', '!!!'), True, True
        )
        self.assertEqual((frozenset('A'), frozenset('B')), required)
        self.assertEqual(frozenset('CDE'), forbidden)

    def test_any_of(self):
        required, forbidden = grammar.parse_required('in:A, B', True, True)
        self.assertEqual((frozenset('AB'),), required)
        self.assertEqual(frozenset(), forbidden)

    def test_in_after_the_beginning_is_part_of_a_name(self):
        required, forbidden = grammar.parse_required('A,in:B,!in:C', True, True)
        self.assertEqual((frozenset('A'), frozenset(('in:B',))), required)
        self.assertEqual(frozenset(('in:C',)), forbidden)

    def test_repeated_names_are_merged(self):
        self.assertEqual(
            ((frozenset('A'),), frozenset()), grammar.parse_required('A,A', True, True)
        )

    def test_invalid_values(self):
        for value in ('', 'A,', 'A, ,B', '!', 'A,!!', 'in:', 'in:A,', 'in:A,!B'):
            self.assertRaises(exception.BadQueryValue, grammar.parse_required, value, True, True)

    def test_old_microversions(self):
        for value, flags in (
            ('!A', {'allow_forbidden': False, 'allow_any': False}),
            ('in:A', {'allow_forbidden': True, 'allow_any': False}),
        ):
            error = self.assertRaises(
                exception.BadQueryValue, grammar.parse_required, value, **flags
            )
            self.assertIn('not supported in this microversion', str(error))


class ParseRepeatedRequiredTest(base.BaseTestCase):
    def test_values_are_combined(self):
        required, forbidden = grammar.parse_repeated_required(['A,!B', 'in:C,D', '!E'], True, True)
        self.assertEqual((frozenset('A'), frozenset('CD')), required)
        self.assertEqual(frozenset('BE'), forbidden)

    def test_equal_any_sets_are_merged(self):
        values = ['A', 'in:C,D', 'A,B', 'in:D,C', 'in:A'] * 100
        required, _ = grammar.parse_repeated_required(values, True, True)
        self.assertEqual((frozenset('A'), frozenset('CD'), frozenset('B')), required)

    def test_each_value_is_checked(self):
        error = self.assertRaises(
            exception.BadQueryValue, grammar.parse_repeated_required, ['A', 'A,', '!'], True, True
        )
        self.assertIn("'A,'", str(error))


class ParseMemberOfTest(base.BaseTestCase):
    def test_forms(self):
        required, forbidden = grammar.parse_member_of([A, f'in:{A},{B}', f'!{B}', f'!in:{A}'], True)
        self.assertEqual((frozenset((A,)), frozenset((A, B))), required)
        self.assertEqual(frozenset((A, B)), forbidden)

    def test_invalid_values(self):
        for values in (
            [''], ['in:'], [f'{A},{B}'], [f'!{A},{B}'], [f'in:{A},'], [f' {A}'], [f'in:{A}, {B}'],
            [f'!!{A}'], ['x'], [f'in:!{A}'], [A, 'x'],
        ):  # fmt: skip
            self.assertRaises(exception.BadQueryValue, grammar.parse_member_of, values, True)

    def test_equal_sets_are_merged(self):
        required, _ = grammar.parse_member_of([A, f'in:{A},{B}', f'in:{B},{A}', A] * 100, True)
        self.assertEqual((frozenset((A,)), frozenset((A, B))), required)

    def test_old_microversions(self):
        self.assertRaises(exception.BadQueryValue, grammar.parse_member_of, [f'!{A}'], False)
        self.assertRaises(
            exception.BadQueryValue, grammar.parse_member_of, [A, B], False, allow_many=False
        )


class ParseInTreeTest(base.BaseTestCase):
    def test_blanks_are_trimmed(self):
        self.assertEqual(A, grammar.parse_in_tree(f' {A}\t'))

    def test_text_is_not_normalized(self):
        self.assertEqual(B, grammar.parse_in_tree(B))

    def test_invalid_values(self):
        for value in ('', ' ', 'x', f'{A},{A}'):
            self.assertRaises(exception.BadQueryValue, grammar.parse_in_tree, value)


class UuidTest(base.BaseTestCase):
    uuid = '0c5f4a64-9d1e-4c07-a8a3-5a8f0e9a7b02'

    def test_every_form_is_a_uuid(self):
        for text in (self.uuid, self.uuid.upper(), self.uuid.replace('-', ''), f'{{{self.uuid}}}'):
            self.assertEqual(self.uuid, grammar.normalize_uuid(text))
        self.assertRaises(ValueError, grammar.normalize_uuid, 'x')
