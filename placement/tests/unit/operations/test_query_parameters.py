"""The service accepts exactly the declared query parameters, and every value that they allow.

The handlers parse the query string, and then call a function that reads the database. In these
tests, the function raises an exception instead, which shows that the query string was accepted.
"""

import functools
import re
from unittest import mock
from urllib.parse import urlencode

import fixtures
import hypothesis
from hypothesis import strategies as st

from placement import handler, microversion
from placement.http import ENVIRON_CONTEXT
from placement.microversion import VERSIONS
from placement.operations import OPERATIONS
from placement.tests.properties import REPEATABLE, UnmeasuredTestCase
from placement.tests.unit import edge

ALL_VERSIONS = [microversion.of_text(text) for text in VERSIONS]
WITH_QUERY = [
    (path, methods['GET'])
    for path, methods in OPERATIONS.items()
    if 'GET' in methods and methods['GET'].query is not None
]
# The functions that the handlers call with the parsed query.
READERS = (
    'placement.objects.provider_search.list_matching',
    'placement.objects.trait.list_matching',
    'placement.objects.usage.by_project',
    'placement.objects.usage.by_consumer_type',
    'placement.candidates.search.allocation_candidates',
)
UUID = '7b9e1d1c-0000-4000-8000-000000000001'
# A valid value of each parameter: a UUID, if there is no other one.
SAMPLES = {
    **{parameter.name: UUID for _, operation in WITH_QUERY for parameter in operation.query},
    'name': 'in:A',
    'associated': 'true',
    'resources': 'VCPU:1',
    'required': 'A',
    'root_required': 'A',
    'same_subtree': '1',
    'limit': '1',
    'group_policy': 'none',
    'project_id': 'p',
    'user_id': 'u',
    'consumer_type': 'INSTANCE',
}
# The longest suffix has 64 characters. In old microversions, a suffix is a number.
SUFFIXES = ('', '0', '1', '01', '_A', '-', 'x' * 64, 'x' * 65, ' ')
NAMES = [f'{name}{suffix}' for name in SAMPLES for suffix in SUFFIXES] + ['unknown', '']
# Values in query strings: any text that is valid UTF-8 and contains no NUL character.
CHARACTERS = st.characters(exclude_categories=['Cs'], exclude_characters='\0')


class _AcceptedError(Exception):
    """A handler has accepted a query string."""


def parameters():
    """Return the path, the operation and the declaration of each query parameter."""
    return [
        (path, operation, parameter)
        for path, operation in WITH_QUERY
        for parameter in operation.query
    ]


def declares(operation, version, name):
    """Return whether an operation declares a parameter with this name in a microversion."""
    for parameter in operation.query:
        if version < parameter.since or not name.startswith(parameter.name):
            continue
        suffix = name.removeprefix(parameter.name)
        pattern = '' if parameter.suffix is None else parameter.suffix.pick(version)
        if re.fullmatch(pattern, suffix):
            return True
    return False


def versions_of_changes(operation):
    """Return the microversions in which the declared parameters differ from those before.

    The microversions before them, and the newest one, are among them, too.
    """
    declared = [{name for name in NAMES if declares(operation, one, name)} for one in ALL_VERSIONS]
    found = {operation.since, ALL_VERSIONS[-1]}
    for number, version in enumerate(ALL_VERSIONS[1:], 1):
        if version > operation.since and declared[number] != declared[number - 1]:
            found |= {ALL_VERSIONS[number - 1], version}
    return found


def required_parameters(operation, version):
    return {one.name for one in operation.query if one.is_required(version)}


def values(schema):
    """Return a strategy for the texts of values that a schema allows."""
    if 'enum' in schema:
        return st.sampled_from(schema['enum'])
    if schema['type'] == 'integer':
        return st.integers(min_value=schema['minimum']).map(str)
    shortest, longest = schema.get('minLength', 0), schema.get('maxLength')
    if 'pattern' not in schema:
        return st.text(CHARACTERS, min_size=shortest, max_size=longest)
    found = matching(schema['pattern'])
    return found.filter(lambda value: longest is None or len(value) <= longest)


@functools.cache
def matching(pattern):
    """Return a strategy for texts that match a pattern; it parses the pattern only once."""
    return st.from_regex(pattern, alphabet=CHARACTERS)


def contradicts(value):
    """Return whether a list of traits requires and forbids the same trait."""
    names = value.removeprefix('in:').split(',')
    return any(f'!{name}' in names for name in names)


class QueryParametersTest(UnmeasuredTestCase):
    def setUp(self):
        super().setUp()
        self.application = handler.PlacementHandler()
        for reader in READERS:
            self.useFixture(fixtures.MonkeyPatch(reader, mock.Mock(side_effect=_AcceptedError)))

    def accepts(self, path, version, pairs):
        """Return whether the service accepts a query string of names and values."""
        environ = edge.at(
            version,
            path=path,
            QUERY_STRING=urlencode(pairs),
            **{ENVIRON_CONTEXT: mock.Mock()},
        )
        try:
            response = edge.call(self.application, environ)
        except _AcceptedError:
            return True
        self.assertEqual(400, response.status, response.body)
        return False

    def with_others(self, path, operation, version, name):
        """Return the names and values of the parameters that a parameter needs beside it."""
        needed = required_parameters(operation, version) - {name}
        others = {one: SAMPLES[one] for one in needed}
        if path != '/allocation_candidates':
            return others
        others['resources'] = 'VCPU:1'
        if version >= microversion.GRANULAR_GROUPS:
            # The group of the parameter itself, and the one that same_subtree lists.
            others |= {'resources1': 'VCPU:1', 'group_policy': 'none'}
            match = re.fullmatch(r'(required|member_of|in_tree)(.+)', name)
            if match and declares(operation, version, name):
                others[f'resources{match.group(2)}'] = 'VCPU:1'
        others.pop(name, None)
        return others

    def test_the_accepted_names_are_the_declared_ones(self):
        for path, operation in WITH_QUERY:
            changes = versions_of_changes(operation)
            for version in ALL_VERSIONS:
                if version < operation.since:
                    continue
                for name in NAMES if version in changes else SAMPLES:
                    kind = next((one for one in SAMPLES if name.startswith(one)), 'unknown')
                    others = self.with_others(path, operation, version, name)
                    accepted = self.accepts(path, version, {**others, name: SAMPLES.get(kind, 'x')})
                    expected = declares(operation, version, name)
                    self.assertEqual(expected, accepted, (path, version, name))

    def test_the_required_parameters(self):
        for path, operation in WITH_QUERY:
            for version in ALL_VERSIONS:
                if version < operation.since:
                    continue
                for name in required_parameters(operation, version):
                    others = self.with_others(path, operation, version, name)
                    self.assertFalse(self.accepts(path, version, others), (path, version, name))
                    pairs = {**others, name: SAMPLES[name]}
                    self.assertTrue(self.accepts(path, version, pairs), (path, version, name))

    def test_every_declared_value_is_accepted(self):
        for path, operation, parameter in parameters():
            with self.subTest(f'{path} {parameter.name}'):
                self.check_values(path, operation, parameter)

    def check_values(self, path, operation, parameter):
        """Require that the service accepts random values of a parameter in random microversions."""
        versions = [version for version in ALL_VERSIONS if version >= parameter.since]

        @hypothesis.settings(REPEATABLE, max_examples=8)
        @hypothesis.given(st.sampled_from(versions), st.data())
        def check(version, data):
            name = parameter.name
            if parameter.suffix is not None:
                name += data.draw(matching(rf'^{parameter.suffix.pick(version)}\Z'))
            value = data.draw(values(parameter.value.pick(version)))
            hypothesis.assume(not contradicts(value))
            others = self.with_others(path, operation, version, name)
            if name == 'same_subtree':
                others |= {f'resources{suffix}': 'VCPU:1' for suffix in value.split(',')}
            accepted = self.accepts(path, version, {**others, name: value})
            self.assertTrue(accepted, (path, version, name, value))

        check()
