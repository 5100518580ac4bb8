"""Pseudonyms in place of names."""

import re

from oslotest import base

from placement.admin.transfer import model
from placement.admin.transfer.pseudonyms import Pseudonyms

KEY = b'a key with 16 bytes or more'
UUID = 'a0000000-0000-4000-8000-000000000000'
NOW = (None, None)


class PseudonymsTest(base.BaseTestCase):
    def test_names_are_replaced(self):
        rename = Pseudonyms(KEY)
        for kind, pattern in (
            (model.PROJECT, r'project-[0-9a-f]{20}'),
            (model.USER, r'user-[0-9a-f]{20}'),
            (model.CONSUMER_TYPE, r'TYPE_[0-9A-F]{20}'),
        ):
            (name, *times) = rename(kind, ('SECRET', *NOW))
            self.assertTrue(re.fullmatch(pattern, name), name)
            self.assertEqual([None, None], times)
        for kind in (model.RESOURCE_CLASS, model.TRAIT):
            (name, *_) = rename(kind, ('CUSTOM_SECRET', *NOW))
            self.assertTrue(re.fullmatch('CUSTOM_[0-9A-F]{20}', name), name)

    def test_the_name_of_a_provider_becomes_its_uuid(self):
        row = (UUID, 'compute-1.example.com', 3, None, *NOW)
        renamed = Pseudonyms(b'any')(model.PROVIDER, row)
        self.assertEqual([UUID, f'provider-{UUID}', 3, None, *NOW], renamed)

    def test_well_known_names_are_kept(self):
        for kind, name in (
            (model.RESOURCE_CLASS, 'VCPU'),
            (model.TRAIT, 'HW_CPU_X86_AVX2'),
            (model.CONSUMER_TYPE, 'INSTANCE'),
            (model.CONSUMER_TYPE, 'MIGRATION'),
            (model.PROJECT, '00000000-0000-0000-0000-000000000000'),
        ):
            self.assertEqual([name, *NOW], list(Pseudonyms(KEY)(kind, (name, *NOW))))

    def test_a_reference_has_the_pseudonym_of_the_row(self):
        rename = Pseudonyms(b'key')
        project, *_ = rename(model.PROJECT, ('one', *NOW))
        user, *_ = rename(model.USER, ('one', *NOW))
        self.assertNotEqual(project.removeprefix('project-'), user.removeprefix('user-'))
        consumer = rename(model.CONSUMER, (UUID, 1, 'one', 'one', None, *NOW))
        self.assertEqual([UUID, 1, project, user, None, *NOW], consumer)
        gpu, *_ = rename(model.RESOURCE_CLASS, ('CUSTOM_GPU', *NOW))
        self.assertEqual(
            [UUID, UUID, gpu, 1, *NOW],
            rename(model.ALLOCATION, (UUID, UUID, 'CUSTOM_GPU', 1, *NOW)),
        )
        self.assertEqual(gpu, rename(model.INVENTORY, (UUID, 'CUSTOM_GPU', *range(6), *NOW))[1])

    def test_rows_without_names_are_unchanged(self):
        for row in ((UUID, *NOW),):
            self.assertEqual(row, Pseudonyms(KEY)(model.AGGREGATE, row))
        row = (UUID, UUID, *NOW)
        self.assertEqual(row, Pseudonyms(KEY)(model.PROVIDER_AGGREGATE, row))

    def test_pseudonyms_are_stable_and_depend_on_the_key(self):
        def pseudonym(key: bytes) -> str:
            return Pseudonyms(key)(model.PROJECT, ('one', *NOW))[0]

        self.assertEqual(pseudonym(KEY), pseudonym(KEY))
        self.assertEqual(3, len({pseudonym(key) for key in (b'', KEY, b'other')}))
