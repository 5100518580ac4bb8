"""Groups of texts that are equal when letter case is ignored."""

from oslotest import base

from placement.admin.audit import duplicates


class GroupsTest(base.BaseTestCase):
    def groups(self, *texts):
        return duplicates.groups(texts, frozenset(text.casefold() for text in texts))

    def test_letter_case(self):
        self.assertEqual([('HOST', 'Host', 'host')], self.groups('host', 'HOST', 'other', 'Host'))

    def test_letters_that_are_not_ASCII(self):
        self.assertEqual([('STRASSE', 'straße')], self.groups('straße', 'STRASSE'))

    def test_only_texts_of_interest_are_compared(self):
        self.assertEqual([], duplicates.groups(['a', 'A'], frozenset()))
