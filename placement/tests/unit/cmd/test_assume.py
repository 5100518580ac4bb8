"""The changes of the option `--assume`: their forms, and what the output says of them."""

import argparse

from oslotest import base

from placement.admin.assume import model
from placement.admin.failure import CannotProceedError
from placement.admin.names import Names, digits_of
from placement.cmd import assume
from placement.objects.provider_search import Filters

AGGREGATE = '7d2c1fa0-5b0c-4f2e-9a83-0f4b5d6f7a10'
UPPER = AGGREGATE.upper()


class ParseTest(base.BaseTestCase):
    def assert_parsed(self, expected: model.Change) -> None:
        self.assertEqual((expected,), assume.parse([expected.text]))

    def test_trees(self):
        self.assert_parsed(model.Without('without:rack-1?*=:', 'rack-1?*=:'))
        self.assert_parsed(model.Copies('copies:20*a*b', 'a*b', 20))

    def test_fields(self):
        for text, field, value in (
            ('total=16', 'total', 16),
            ('reserved=0', 'reserved', 0),
            ('min_unit=2.0', 'min_unit', 2),
            ('max_unit=1e3', 'max_unit', 1000),
            ('step_size=2147483647', 'step_size', 2147483647),
            ('allocation_ratio=8', 'allocation_ratio', 8.0),
            ('allocation_ratio=0.5', 'allocation_ratio', 0.5),
        ):
            change = model.SetField(f'set:CUSTOM_A.{text}', 'CUSTOM_A', field, value, None)
            self.assert_parsed(change)
            (parsed,) = assume.parse([change.text])
            self.assertIs(type(value), type(parsed.value))

    def test_links(self):
        self.assert_parsed(model.SetTrait('trait:+CUSTOM_A', 'CUSTOM_A', True, None))
        self.assert_parsed(model.SetTrait('trait:-CUSTOM_A', 'CUSTOM_A', False, None))
        for uuid in (AGGREGATE, UPPER, AGGREGATE.replace('-', '')):
            self.assert_parsed(model.SetAggregate(f'aggregate:+{uuid}', uuid, True, None))
        self.assert_parsed(model.SetAggregate(f'aggregate:-{AGGREGATE}', AGGREGATE, False, None))

    def test_filters(self):
        query = f'name=a%3Fb&member_of=!{AGGREGATE}&required=A,!B&required=in:C,D&resources=VCPU:2'
        filters = Filters(
            name='a?b',
            forbidden_aggregates=frozenset([AGGREGATE]),
            required=(frozenset('A'), frozenset('CD')),
            forbidden=frozenset('B'),
            amounts={'VCPU': 2},
        )
        self.assert_parsed(model.SetTrait(f'trait:+T?{query}', 'T', True, filters))
        self.assert_parsed(model.SetAggregate(f'aggregate:-{UPPER}?', UPPER, False, Filters()))
        filters = Filters(uuid=AGGREGATE, in_tree=AGGREGATE)
        text = f'set:VCPU.total=2?uuid={AGGREGATE}&in_tree={AGGREGATE}'
        self.assert_parsed(model.SetField(text, 'VCPU', 'total', 2, filters))
        filters = Filters(name='a?b')
        self.assert_parsed(model.SetTrait('trait:-T?name=a?b', 'T', False, filters))

    def test_order(self):
        texts = ['without:a', 'copies:1*b', 'without:a']
        self.assertEqual(texts, [change.text for change in assume.parse(texts)])
        self.assertEqual((), assume.parse([]))

    def test_refusals(self):
        forms = 'It has none of the forms without:PROVIDER, copies:N*PROVIDER'
        field = 'It does not have the form set:CLASS.FIELD=VALUE, where FIELD is total, reserved'
        copies = 'It does not have the form copies:N*PROVIDER, with N from 1 to 999999.'
        sign = 'A plus or a minus sign and a name must follow the colon.'
        parameters = 'Invalid query string parameters:'
        for text, reason in (
            ('', forms),
            ('without', forms),
            ('without:', forms),
            ('remove:a', forms),
            ('Without:a', forms),
            ('copies:a', copies),
            ('copies:0*a', copies),
            ('copies:-1*a', copies),
            ('copies:1_0*a', copies),
            ('copies:1000000*a', copies),
            ('copies:2*', copies),
            ('set:VCPU=2', field),
            ('set:VCPU.total', field),
            ('set:.total=2', field),
            ('set:VCPU.used=2', field),
            ('set:VCPU.resource_provider_generation=2', field),
            ('set:VCPU.total=', "The value '' is not a number."),
            ('set:VCPU.total=NaN', "The value 'NaN' is not a number."),
            ('set:VCPU.total=1 2', "The value '1 2' is not a number."),
            ('set:VCPU.total=true', "True is not of type 'integer' (at $.total)."),
            ('set:VCPU.total="2"', "'2' is not of type 'integer' (at $.total)."),
            ('set:VCPU.total=1.5', "1.5 is not of type 'integer' (at $.total)."),
            ('set:VCPU.total=0', '0 is less than the minimum of 1 (at $.total).'),
            ('set:VCPU.reserved=-1', '-1 is less than the minimum of 0 (at $.reserved).'),
            ('set:VCPU.max_unit=2147483648', 'is greater than the maximum of 2147483647'),
            ('set:VCPU.allocation_ratio=1e39', 'is greater than the maximum of 3.40282e+38'),
            ('set:VCPU.allocation_ratio=null', "None is not of type 'number'"),
            ('trait:A', sign),
            ('trait:+', sign),
            ('trait:?name=a', sign),
            ('aggregate:A', sign),
            ('aggregate:+a', "'a' is not a 'uuid'."),
            (f'aggregate:-{{{AGGREGATE}}}', 'is too long.'),
            ('trait:+A?nam=a', f"{parameters} Additional properties are not allowed ('nam' was"),
            ('trait:+A?uuid=a', f"{parameters} 'a' does not match"),
            ('trait:+A?resources=a', "'a' does not have the form CLASS:AMOUNT."),
            ('trait:+A?required=', 'a trait name is empty.'),
            ('trait:+A?member_of=a', "'a' is not a uuid."),
            ('trait:+A?name=%ff', f'{parameters} it is not valid UTF-8.'),
        ):
            error = self.assertRaises(CannotProceedError, assume.parse, ['without:a', text])
            self.assertTrue(str(error).startswith(f"The assumption '{text}' is not valid: "), error)
            self.assertIn(reason, str(error))
            self.assertTrue(str(error).endswith('.'), error)

    def test_bytes_that_are_not_utf_8(self):
        error = self.assertRaises(CannotProceedError, assume.parse, ['without:\udcff'])
        reason = r"The assumption 'without:\udcff' is not valid: It is not valid UTF-8."
        self.assertEqual(reason, str(error))

    def test_a_refusal_contains_no_control_sequences(self):
        error = self.assertRaises(CannotProceedError, assume.parse, ['\x1b[31m'])
        self.assertTrue(str(error).startswith(r"The assumption '\x1b[31m' is not valid"), error)


class OutputTest(base.BaseTestCase):
    def test_without_changes(self):
        unchanged = model.Assumed(None, (), {})
        self.assertEqual({}, assume.document(unchanged))
        self.assertEqual('', assume.heading(unchanged, Names()))

    def test_changes_without_usage_above_the_capacity(self):
        assumed = model.Assumed(None, ('without:a', 'without:\x1b'), {})
        expected = {'assumptions': ['without:a', 'without:\x1b'], 'over': {}}
        self.assertEqual(expected, assume.document(assumed))
        self.assertEqual('Assumed: without:a, without:\\x1b\n\n', assume.heading(assumed, Names()))

    def test_usage_above_the_capacity(self):
        over = {'MEMORY_MB': model.Over(2, 512), 'VCPU': model.Over(1, 3)}
        assumed = model.Assumed(None, ('set:VCPU.total=2',), over)
        self.assertEqual(
            {
                'MEMORY_MB': {'inventories': 2, 'amount': 512},
                'VCPU': {'inventories': 1, 'amount': 3},
            },
            assume.document(assumed)['over'],
        )
        self.assertEqual(
            'Assumed: set:VCPU.total=2\n'
            'The usage of MEMORY_MB exceeds the capacity of 2 inventories by 512 in total.\n'
            'The usage of VCPU exceeds the capacity of 1 inventory by 3.\n\n',
            assume.heading(assumed, Names()),
        )

    def test_names_of_uuids(self):
        changes = (f'aggregate:-{AGGREGATE}?member_of={AGGREGATE}', f'without:{AGGREGATE}')
        heading = assume.heading(
            model.Assumed(None, changes, {}), Names({digits_of(AGGREGATE): 'fast'})
        )
        named = f'fast {AGGREGATE}'
        expected = f'Assumed: aggregate:-{named}?member_of={named}, without:{named}\n\n'
        self.assertEqual(expected, heading)


class OptionTest(base.BaseTestCase):
    def test_the_option_can_be_repeated(self):
        parser = argparse.ArgumentParser()
        assume.add_option(parser)
        self.assertEqual([], parser.parse_args([]).assume)
        given = parser.parse_args(['--assume', 'without:a', '--assume', 'trait:-B'])
        self.assertEqual(['without:a', 'trait:-B'], given.assume)
        self.assertIn('copies:N*PROVIDER', parser.format_help())
