"""The rows of the tables of fields are derived from schemas of several microversions.

The schemas here are small; `test_tables` has the rows of operations.
"""

from oslotest import base

from placement.microversion import Variants, Version
from placement.schemas import common
from tools.api_reference import fields

TEXT = {'type': 'string', 'description': 'A text.'}
COUNT = {'type': 'integer', 'description': 'A number.'}
PROVIDERS = 'The keys are UUIDs of resource providers.'
V1, V2, V3 = (Version(1, minor) for minor in (1, 2, 3))


def document(required=(), **properties):
    return {'type': 'object', 'properties': properties, 'required': list(required)}


def rows(**schemas):
    """Return the rows for the schemas of microversions 1.1, 1.2, and 1.3."""
    return fields.rows({Version(1, int(name[1:])): schema for name, schema in schemas.items()})


def summary(found):
    """Return the name, the type, and the range of each row."""
    return [(row.name, row.type, f'{row.since} {row.until}') for row in found]


class RangeTest(base.BaseTestCase):
    def test_equal_fields_of_all_microversions_are_one_row(self):
        schema = document(['name'], name=TEXT)
        (row,) = rows(v1=schema, v2=schema, v3=schema)
        self.assertEqual(
            fields.Row('name', 'body', 'string', 'yes', V1, V3, 'A text.'),
            row,
        )

    def test_a_new_field_has_a_first_microversion(self):
        found = rows(v1=document(a=TEXT), v2=document(a=TEXT, b=COUNT))
        self.assertEqual([('a', 'string', '1.1 1.2'), ('b', 'integer', '1.2 1.2')], summary(found))

    def test_a_removed_field_has_a_last_microversion(self):
        found = rows(v1=document(a=TEXT, b=COUNT, c=TEXT), v2=document(a=TEXT, c=TEXT))
        self.assertEqual(
            [('a', 'string', '1.1 1.2'), ('b', 'integer', '1.1 1.1'), ('c', 'string', '1.1 1.2')],
            summary(found),
        )

    def test_a_field_cannot_be_missing_in_between(self):
        self.assertRaises(ValueError, rows, v1=document(a=TEXT), v2=document(), v3=document(a=TEXT))

    def test_the_variants_of_a_schema(self):
        variants = Variants({V1: document(a=TEXT), V3: document(a=TEXT, b=TEXT)})
        found = fields.rows({version: variants.pick(version) for version in (V1, V2, V3)})
        self.assertEqual([('a', 'string', '1.1 1.3'), ('b', 'string', '1.3 1.3')], summary(found))


class FormTest(base.BaseTestCase):
    def test_each_form_of_a_field_is_a_row_and_the_latest_is_the_first(self):
        by_provider = common.keyed('.', document(n=COUNT), description=PROVIDERS)
        listed = common.array(document(uuid=TEXT), description='A list.')
        found = rows(v1=document(a=listed), v2=document(a=by_provider, z=TEXT))
        self.assertEqual(
            [
                ('a', 'object', '1.2 1.2'),
                ('a.{provider_uuid}.n', 'integer', '1.2 1.2'),
                ('a', 'array of objects', '1.1 1.1'),
                ('a[].uuid', 'string', '1.1 1.1'),
                ('z', 'string', '1.2 1.2'),
            ],
            summary(found),
        )

    def test_another_description_is_another_row_above_the_members(self):
        old = {**document(n=COUNT), 'description': 'Old.'}
        new = {**document(n=COUNT), 'description': 'New.'}
        found = rows(v1=document(a=old), v2=document(a=new))
        self.assertEqual(
            [('a', 'New.'), ('a', 'Old.'), ('a.n', 'A number.')],
            [(row.name, row.description) for row in found],
        )

    def test_a_document_that_is_an_array(self):
        found = rows(v1=common.array(TEXT, description='Texts.'), v2=document(a=TEXT))
        self.assertEqual(
            [('a', 'string', '1.2 1.2'), ('(body)', 'array of strings', '1.1 1.1')],
            summary(found),
        )


class NameTest(base.BaseTestCase):
    def names(self, schema):
        return [row.name for row in rows(v1=schema)]

    def test_members_of_members(self):
        schema = document(a=common.array(document(b=document(c=TEXT))))
        self.assertEqual(['a', 'a[].b', 'a[].b.c'], self.names(schema))

    def test_keys_are_named_after_the_description(self):
        amounts = common.keyed('.', COUNT, description='The keys are names of resource classes.')
        self.assertEqual(['a', 'a.{resource_class}'], self.names(document(a=amounts)))

    def test_keys_of_the_document(self):
        schema = common.keyed('.', document(a=TEXT), description='The keys are UUIDs of consumers.')
        self.assertEqual(['{consumer_uuid}.a'], self.names(schema))

    def test_fixed_and_other_keys(self):
        schema = {
            **document(count=COUNT),
            'additionalProperties': COUNT,
            'description': 'The other keys are names of resource classes.',
        }
        self.assertEqual(['count', '{resource_class}'], self.names(schema))

    def test_keys_must_be_described(self):
        for description in ('', 'The keys are texts.'):
            schema = common.keyed('.', COUNT, description=description)
            self.assertRaises(fields.UndescribedKeysError, self.names, schema)


class RequiredTest(base.BaseTestCase):
    def required(self, *schemas):
        versions = (V1, V2, V3)
        (row,) = fields.rows(dict(zip(versions, schemas, strict=True)))
        return row.required

    def test_required_optional_and_a_range(self):
        optional, required = document(a=TEXT), document(['a'], a=TEXT)
        self.assertEqual('yes', self.required(required, required, required))
        self.assertEqual('no', self.required(optional, optional, optional))
        self.assertEqual('1.2 and later', self.required(optional, required, required))
        self.assertEqual('1.1 to 1.2', self.required(required, required, optional))
        self.assertEqual('only 1.2', self.required(optional, required, optional))


class DescriptionTest(base.BaseTestCase):
    def description(self, **schemas):
        found = rows(**{name: document(a=schema) for name, schema in schemas.items()})
        return found[0].description

    def test_limits_follow_the_description(self):
        limited = {**COUNT, 'minimum': 1, 'maximum': 9}
        self.assertEqual('A number. From 1 to 9.', self.description(v1=limited))

    def test_a_limit_of_some_microversions_has_a_range(self):
        described = self.description(v1={**COUNT, 'minimum': 1}, v2=COUNT)
        self.assertEqual('A number. At least 1 (only 1.1).', described)

    def test_values_are_in_the_order_of_their_microversions(self):
        first, later = {**TEXT, 'enum': ['x']}, {**TEXT, 'enum': ['w', 'x']}
        self.assertEqual('A text. Always `x`.', self.description(v1=first))
        self.assertEqual(
            'A text. One of `x`, `w` (1.2 and later).',
            self.description(v1=first, v2=later, v3=later),
        )

    def test_limits_can_be_omitted(self):
        schemas = {V1: document(a={**COUNT, 'minimum': 1})}
        (row,) = fields.rows(schemas, limited=False)
        self.assertEqual('A number.', row.description)


class TypeTest(base.BaseTestCase):
    def test_types(self):
        for expected, schema in (
            ('integer', COUNT),
            ('integer or null', {'type': ['integer', 'null']}),
            ('UUID', common.UUID),
            ('UUID', {'type': 'string', 'pattern': common.HYPHENATED_UUID}),
            ('UUID or null', {'type': ['string', 'null'], 'format': 'uuid'}),
            ('array of UUIDs', common.array(common.UUID)),
            ('array of objects', common.array(document())),
        ):
            self.assertEqual(expected, fields.type_of(schema))
