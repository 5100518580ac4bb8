"""The service accepts exactly the declared query parameters, and the values that they allow."""

import functools
import re
from urllib.parse import urlencode

import ddt
import hypothesis
from hypothesis import strategies as st
from oslotest import base

from api_reference import parameters as forms
from api_reference.operations import OPERATIONS
from placement import exception, grammar, microversion
from placement.candidates import request
from placement.microversion import VERSIONS
from placement.tests.properties import REPEATABLE, UnmeasuredTestCase, examples
from placement.tests.unit.api import ApiTestCase

ALL_VERSIONS = [microversion.of_text(text) for text in VERSIONS]
WITH_QUERY = [
    (path, methods['GET'])
    for path, methods in OPERATIONS.items()
    if 'GET' in methods and methods['GET'].query is not None
]
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
# Values in query strings: any text that is valid UTF-8 and contains no NUL character. ASCII has
# separators that are white space in patterns of Python, but not in those of other languages.
CHARACTERS = st.characters(exclude_categories=['Cs'], exclude_characters='\0\x1c\x1d\x1e\x1f')


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
    names = [name.strip() for name in value.removeprefix('in:').split(',')]
    forbidden = {name.lstrip('!') for name in names if name.startswith('!')}
    return not forbidden.isdisjoint(names)


def required(version):
    """Return the schema of `required`, and a function that returns the names in a value."""
    declared = forms.forms('required', microversion.PROVIDERS_REQUIRED)

    def names(value):
        any_sets, forbidden = grammar.parse_required(
            value,
            allow_forbidden=version >= microversion.FORBIDDEN_TRAITS,
            allow_any=version >= microversion.ANY_TRAITS,
        )
        return {name for any_set in any_sets for name in any_set} | forbidden

    return declared.pick(version), names


def member_of(version):
    """Return the schema of `member_of`, and a function that parses a value."""
    declared = forms.forms('member_of', microversion.PROVIDERS_MEMBER_OF)

    def names(value):
        grammar.parse_member_of([value], version >= microversion.FORBIDDEN_AGGREGATES)
        return set()

    return declared.pick(version), names


def named(name):
    """Return the schema of the parameter of a search for candidates."""
    found = [one for one in OPERATIONS['/allocation_candidates']['GET'].query if one.name == name]
    return found[0].value.pick(microversion.MAX_VERSION)


HEX = '0d10000000004000800000000000000a'
LISTS = ('A', 'A,B_1', 'in:A,B_1', '!A', '!!A, B_1', ' A ,B_1\t')
AGGREGATES = (HEX, UUID, f'in:{HEX},{UUID}', f'!{UUID}', f'!in:urn:uuid:{UUID},{{{HEX}}}')
# The schema of a value, the function that returns its names, and accepted values.
FORMS = {
    'resources': (named('resources'), grammar.parse_resources, ('A:1', 'A:1,B_1:20', 'A: +1_0 ')),
    'required, 1.18': (*required(microversion.PROVIDERS_REQUIRED), LISTS),
    'required, 1.22': (*required(microversion.FORBIDDEN_TRAITS), LISTS),
    'required, 1.39': (*required(microversion.ANY_TRAITS), LISTS),
    'root_required': (named('root_required'), required(microversion.FORBIDDEN_TRAITS)[1], LISTS),
    'member_of, 1.3': (*member_of(microversion.PROVIDERS_MEMBER_OF), AGGREGATES),
    'member_of, 1.32': (*member_of(microversion.FORBIDDEN_AGGREGATES), AGGREGATES),
    'same_subtree': (named('same_subtree'), request.parse_same_subtree, ('A', '_A, B', 'A,1')),
    'in_tree': (
        named('in_tree'),
        lambda value: {grammar.parse_in_tree(value)} - {value.strip()},
        (UUID, f' {HEX}', f'uuid:{UUID} ', f'{{{UUID}}}'),
    ),
}
# What a change inserts into a value.
PARTS = ('A', '_', '0', '1', ':', ',', ' ', '\t', '+', '-', '!', 'in:', '{', '}', 'urn:', 'x', 'é')


@st.composite
def changed(draw, texts):
    """Draw one of the texts, and replace up to two characters in up to two places."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 2))
        text = text[:start] + draw(st.sampled_from(PARTS)) + text[end:]
    return text


def is_parsed(names, value, pattern):
    """Return whether a parser accepts a value in which all names can exist."""
    try:
        return all(re.fullmatch(pattern, name) for name in names(value))
    except exception.BadQuery:
        return False


@ddt.ddt
class GrammarTest(base.BaseTestCase):
    @ddt.data(*FORMS)
    def test_the_pattern_matches_the_values_that_the_parser_accepts(self, name):
        schema, names, valid = FORMS[name]
        possible = '[a-zA-Z0-9_-]{1,64}' if name == 'same_subtree' else forms.NAME
        outcomes = set()

        @hypothesis.settings(REPEATABLE, max_examples=examples(100))
        @hypothesis.given(changed(valid))
        def check(value):
            # The pattern expects prefixes of UUIDs only at the beginning, and not in each other.
            hypothesis.assume(not re.search('[-0-9a-f]u|[iu]urn:', value))
            matches = re.search(schema['pattern'], value) is not None
            self.assertEqual(is_parsed(names, value, possible), matches, value)
            outcomes.add(matches)

        check()
        self.assertEqual({False, True}, outcomes)


class QueryParametersTest(ApiTestCase, UnmeasuredTestCase):
    def accepts(self, path, version, pairs):
        """Return whether the service accepts a query string of names and values."""
        return self.problem('GET', path, version, QUERY_STRING=urlencode(pairs)) is None

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

        @hypothesis.settings(REPEATABLE, max_examples=examples(8))
        @hypothesis.given(st.sampled_from(versions), st.data())
        def check(version, data):
            name = parameter.name
            if parameter.suffix is not None:
                name += data.draw(matching(rf'^{parameter.suffix.pick(version)}\Z'))
            value = data.draw(values(parameter.value.pick(version)))
            hypothesis.assume(not contradicts(value))
            others = self.with_others(path, operation, version, name)
            if name == 'same_subtree':
                others |= {f'resources{one.strip()}': 'VCPU:1' for one in value.split(',')}
            accepted = self.accepts(path, version, {**others, name: value})
            self.assertTrue(accepted, (path, version, name, value))

        check()
