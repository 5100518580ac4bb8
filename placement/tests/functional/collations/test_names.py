"""Names that are equal in some collations and different in others.

For each pair of names, the tests query whether the database compares them as equal. If it does, the
service must use one row for both names, and otherwise two rows.
"""

import logging
from urllib import parse
import uuid

import fixtures
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import where
from placement.tests.functional.collations import base
from placement.tests.functional.races.testcase import claim, inventories_of

# Characters outside the Basic Multilingual Plane, which three-byte character sets cannot store.
GRINNING, BEAMING = 'n\N{GRINNING FACE}', 'n\N{GRINNING FACE WITH SMILING EYES}'
QUOTED = parse.quote(GRINNING)
PAIRS = (
    ('1', '\N{CIRCLED DIGIT ONE}'),
    ('fi', '\N{LATIN SMALL LIGATURE FI}'),
    ('2x', '\N{SUPERSCRIPT TWO}x'),
    ('Proj', 'proj'),
    (GRINNING, BEAMING),
    ('\N{LATIN SMALL LETTER SHARP S}', 's'),
    ('\N{LATIN SMALL LETTER SHARP S}', 'ss'),
    ('blank', 'blank '),
    ('e', '\N{LATIN SMALL LETTER E WITH ACUTE}'),
)
# Parts of names that the API restricts to a pattern.
PATTERNED = (('A_B', 'AB'), ('A1', 'A01'))
LOWER, UPPER = (f'{digits}-0000-4000-8000-00000000000a' for digits in ('abcdef00', 'ABCDEF00'))
THIRD = 'Abcdef00-0000-4000-8000-00000000000a'


class Names:
    """The tests, which each class below executes with one collation.

    :cvar stores_everything: whether the database stores characters of four bytes
    :cvar searched: the status of a search for such a character
    """

    stores_everything = True
    searched = 200

    def test_projects_and_users(self):
        provider = self.make_provider({'VCPU': 1000})
        for pair in PAIRS:
            for names in (pair, pair[::-1]):  # in the second iteration, both names exist
                with self.subTest(names=names):
                    self._claim_with(provider, names)

    def _claim_with(self, provider: str, names: tuple[str, str]) -> None:
        consumers = [str(uuid.uuid4()) for _ in names]
        body = {
            consumer: {**claim({provider: 1}, project=project), 'user_id': user}
            for consumer, project, user in zip(consumers, names, names[::-1], strict=True)
        }
        with self.retries() as retries:
            response = self.send('POST', '/allocations', body)
        self.assertEqual([], retries)
        if not self.stores_everything and GRINNING in names:
            self.assertEqual(400, response.status, response.body)
            return
        self.assertEqual(204, response.status, response.body)
        same = self.equal(*names)
        shown = [self.send_ok('GET', f'/allocations/{consumer}') for consumer in consumers]
        for key, requested in (('project_id', names), ('user_id', names[::-1])):
            stored = [one[key] for one in shown]
            self.assertEqual(same, stored[0] == stored[1])
            for one, other in zip(requested, stored, strict=True):
                self.assertTrue(self.equal(one, other), f'{one!r} differs from {other!r}')

    def test_consumer_types(self):
        provider = self.make_provider({'VCPU': 1000})
        for names in PATTERNED:
            with self.subTest(names=names):
                consumers = [str(uuid.uuid4()) for _ in names]
                body = {
                    consumer: {**claim({provider: 1}, project=names[0]), 'consumer_type': name}
                    for consumer, name in zip(consumers, names, strict=True)
                }
                self.send_ok('POST', '/allocations', body)
                usages = self.send_ok('GET', f'/usages?project_id={names[0]}')['usages']
                self.assertEqual(1 if self.equal(*names) else 2, len(usages))

    def test_consumers(self):
        """Two UUIDs of one consumer are rejected in the same body, and valid in separate bodies."""
        provider = self.make_provider({'VCPU': 1000})
        same = self.equal(LOWER, UPPER)
        body = {LOWER: claim({provider: 1}), UPPER: claim({provider: 2})}
        with self.retries() as retries:
            new = self.send('POST', '/allocations', body)
        self.assertEqual((400 if same else 204, []), (new.status, retries), new.body)
        if not same:
            self.assertEqual(3, self.used(provider))
            return
        self.assertIn('more than once', new.detail)
        self.send_ok('POST', '/allocations', {LOWER: claim({provider: 1})})
        another = str(uuid.uuid4())
        for body in (
            {LOWER: claim({provider: 1}, 1), UPPER: claim({provider: 2})},
            {LOWER: claim({provider: 1}, 1), UPPER: claim({}, 1)},
            {UPPER: claim({provider: 1}, 1), THIRD: claim({provider: 2}, 1)},
            {another: claim({provider: 1}), UPPER: claim({}, 1), LOWER: claim({}, 1)},
        ):
            with self.retries() as retries:
                response = self.send('POST', '/allocations', body)
            self.assertEqual((400, []), (response.status, retries), response.body)
        # A move: the body removes the allocations of one consumer, whose UUID has upper case.
        self.send_ok('POST', '/allocations', {another: claim({provider: 4}), UPPER: claim({}, 1)})
        self.assertEqual(4, self.used(provider))
        self.audit()

    def test_the_trail_has_the_stored_spelling_of_a_consumer(self):
        if not self.equal(LOWER, UPPER):
            return
        provider = self.make_provider({'VCPU': 1000})
        self.send_ok('POST', '/allocations', {LOWER: claim({provider: 1})})
        with fixtures.FakeLogger('placement.changes', logging.INFO) as log:
            self.send_ok('POST', '/allocations', {UPPER: claim({}, 1)})
        self.assertIn(LOWER, log.output)

    def test_providers_and_aggregates(self):
        for number, names in enumerate(PAIRS):
            with self.subTest(names=names):
                first, second = (
                    self.send('POST', '/resource_providers', {'name': f'{number}-{name}'})
                    for name in names
                )
                if not self.stores_everything and GRINNING in names:
                    self.assertEqual((400, 400), (first.status, second.status))
                    continue
                expected = 409 if self.equal(*names) else 200
                self.assertEqual((200, expected), (first.status, second.status))
        self._claim_from_provider()
        self._aggregates()

    def _claim_from_provider(self) -> None:
        same = self.equal(LOWER, UPPER)
        self.send_ok('POST', '/resource_providers', {'name': 'host', 'uuid': LOWER})
        self.send_ok(
            'PUT', f'/resource_providers/{LOWER}/inventories', inventories_of({'VCPU': 9}, 0)
        )
        consumer = f'/allocations/{uuid.uuid4()}'
        both = self.send('PUT', consumer, claim({LOWER: 1, UPPER: 2}))
        self.assertEqual(400, both.status)
        self.assertIn('more than once' if same else 'No such', both.detail)
        response = self.send('PUT', consumer, claim({UPPER: 2}))
        self.assertEqual(204 if same else 400, response.status, response.body)
        self.assertEqual(2 if same else 0, self.used(LOWER))
        for query in (f'resource_providers?in_tree={UPPER}', f'resource_providers?uuid={UPPER}'):
            shown = self.send_ok('GET', f'/{query}')['resource_providers']
            self.assertEqual([LOWER] if same else [], [one['uuid'] for one in shown])
        shown = self.send_ok('GET', f'/allocation_candidates?resources=VCPU:1&in_tree={UPPER}')
        self.assertEqual([LOWER] if same else [], [*shown['provider_summaries']])

    def _aggregates(self) -> None:
        own = f'/resource_providers/{LOWER}/aggregates'
        first = str(uuid.uuid4())
        same = self.equal(LOWER, UPPER)
        generation = self.provider(LOWER)['generation']
        for uuids in ([first], [first, LOWER, UPPER], [UPPER, first], [THIRD]):
            body = {'resource_provider_generation': generation, 'aggregates': uuids}
            generation = self.send_ok('PUT', own, body)['resource_provider_generation']
            different = {LOWER if same and one != first else one for one in uuids}
            self.assertEqual(len(different), len(self.send_ok('GET', own)['aggregates']))
        for member_of in (f'in:{first},{UPPER}', UPPER, f'in:{first},{LOWER}', LOWER):
            expected = [LOWER] if same else []
            shown = self.send_ok('GET', f'/resource_providers?member_of={member_of}')
            self.assertEqual(expected, [one['uuid'] for one in shown['resource_providers']])
            query = f'resources=VCPU:1&member_of={member_of}'
            shown = self.send_ok('GET', f'/allocation_candidates?{query}')
            self.assertEqual(expected, [*shown['provider_summaries']])

    def test_searches_for_characters_of_four_bytes(self):
        path = f'/resource_providers/{self.make_provider()}'
        renamed = self.send('PUT', path, {'name': GRINNING})
        self.assertEqual(200 if self.stores_everything else 400, renamed.status, renamed.body)
        for query in (
            f'resource_providers?name={QUOTED}',
            f'usages?project_id={QUOTED}',
            f'usages?project_id=project&user_id={QUOTED}',
        ):
            shown = self.send('GET', f'/{query}')
            self.assertEqual(self.searched, shown.status, shown.body)
            if self.searched == 200 and 'name' in query:
                expected = [GRINNING] if self.stores_everything else []
                found = [one['name'] for one in shown.body['resource_providers']]
                self.assertEqual(expected, found)

    def test_classes_and_traits(self):
        """Only the exact name refers to one, even if the database compares names as equal."""
        self.make_provider({'VCPU': 1})
        for first, second in ((f'CUSTOM_{a}', f'CUSTOM_{b}') for a, b in PATTERNED):
            with self.subTest(names=(first, second)):
                for kind in ('resource_classes', 'traits'):
                    self.assertEqual(201, self.send('PUT', f'/{kind}/{first}').status)
                provider = self.make_provider({first: 9})
                own = f'/resource_providers/{provider}'
                traits = {'resource_provider_generation': 1, 'traits': [first]}
                self.send_ok('PUT', f'{own}/traits', traits)
                self.assertEqual(404, self.send('GET', f'{own}/inventories/{second}').status)
                body = claim({provider: 2})
                body['allocations'][provider]['resources'] = {second: 2}
                both = {'resource_provider_generation': 2, 'traits': [first, second]}
                queries = (f'{second}:1,VCPU:1', f'VCPU:1&required=in:{second},HW_CPU_X86_AVX')
                for method, path, sent in (
                    ('PUT', f'{own}/inventories', inventories_of({second: 8}, 2)),
                    ('PUT', f'{own}/traits', both),
                    ('PUT', f'/allocations/{uuid.uuid4()}', body),
                    *(('GET', f'/resource_providers?resources={query}', None) for query in queries),
                    *(
                        ('GET', f'/allocation_candidates?resources={query}', None)
                        for query in queries
                    ),
                ):
                    response = self.send(method, path, sent)
                    self.assertEqual(400, response.status, f'{path}: {response.body}')
                self.assertEqual([first], self.send_ok('GET', f'{own}/traits')['traits'])
                status = 409 if self.equal(first, second) else 201
                for kind in ('resource_classes', 'traits'):
                    self.assertEqual(status, self.send('PUT', f'/{kind}/{second}').status)

    def test_names_in_paths_and_queries(self):
        for kind in ('resource_classes', 'traits'):
            self.send_ok('PUT', f'/{kind}/CUSTOM_X')
            for method in ('GET', 'DELETE'):
                self.assertEqual(404, self.send(method, f'/{kind}/custom_x').status)
        for query, expected in (
            ('startswith:CUSTOM_X', ['CUSTOM_X']),
            ('in:CUSTOM_X', ['CUSTOM_X']),
            ('in:custom_x', []),
        ):
            self.assertEqual(expected, self.send_ok('GET', f'/traits?name={query}')['traits'])


@where.only_on('mariadb', 'mysql', reason='The collations are those of MariaDB and MySQL.')
class MariaDB(base.CollationTest):
    def setUp(self):
        super().setUp()
        self.assertTrue(self.equal('a', 'a'))


class GeneralCiTest(Names, MariaDB):
    collation = 'utf8mb4_general_ci'


class UnicodeCiTest(Names, MariaDB):
    collation = 'utf8mb4_unicode_ci'


@where.only_on('mariadb', reason='MySQL does not have this collation.')
class Uca1400Test(Names, MariaDB):
    collation = 'utf8mb4_uca1400_ai_ci'


@where.only_on('mysql', reason='MariaDB does not have this collation.')
@where.also_on_mysql('MySQL has collations of its own.')
class Uca900Test(Names, MariaDB):
    """The default of MySQL: other than most collations, it does not ignore trailing spaces."""

    collation = 'utf8mb4_0900_ai_ci'


@where.also_on_mysql('MySQL has collations of its own.')
class BinTest(Names, MariaDB):
    collation = 'utf8mb4_bin'


@where.also_on_mysql('MySQL has collations of its own.')
class ThreeBytesTest(Names, MariaDB):
    collation = 'utf8mb3_general_ci'
    stores_everything = False
    searched = 400


class OldDatabaseTest(Names, MariaDB):
    """A database with three-byte characters, as guides of old releases create it."""

    character_set = 'utf8'
    charset = 'utf8mb4'
    stores_everything = False
    searched = 400


class OldDatabaseAndUrlTest(Names, MariaDB):
    character_set = 'utf8'
    charset = 'utf8'
    stores_everything = False


@where.also_on_mysql('MySQL has collations of its own.')
class OldUrlTest(Names, MariaDB):
    """The tables store four-byte characters, but the connection does not transfer them."""

    character_set = 'utf8mb4'
    charset = 'utf8'
    stores_everything = False
    searched = 400

    def test_names_that_another_process_wrote(self):
        provider = self.make_provider()
        url = db_api.get_placement_engine().url.render_as_string(hide_password=False)
        engine = sa.create_engine(base.with_charset(url, 'utf8mb4'), poolclass=sa.NullPool)
        with engine.begin() as conn:
            conn.execute(sa.update(models.resource_providers).values(name=GRINNING))
        self.assertEqual('n?', self.provider(provider)['name'])


class SeveralCollationsTest(Names, MariaDB):
    """Tables of one database have different collations, because the default has changed."""

    collation = 'utf8mb4_general_ci'
    others = {'consumer_types': 'utf8mb4_unicode_ci', 'traits': 'utf8mb4_unicode_ci'}


@where.only_on('postgresql', reason='The collations are those of PostgreSQL.')
class LooseTest(Names, base.CollationTest):
    collation = 'loose'


@where.only_on('postgresql', reason='The collations are those of PostgreSQL.')
class UnpunctuatedTest(Names, base.CollationTest):
    collation = 'unpunctuated'


@where.only_on('postgresql', 'sqlite', reason='MariaDB has a test for each of its collations.')
class DefaultTest(Names, base.CollationTest):
    pass


@where.only_on('sqlite', reason='The collation is one of SQLite.')
class NocaseTest(Names, base.CollationTest):
    collation = 'NOCASE'


@where.not_on('mariadb', 'mysql', reason='MariaDB has no index of an expression.')
class StricterKeyTest(base.CollationTest):
    """A unique key of an expression that is stricter than the collation of its column."""

    def setUp(self):
        super().setUp()
        self.run_ddl('CREATE UNIQUE INDEX uniq_projects0lower ON projects (lower(external_id))')
        self.addCleanup(self.run_ddl, 'DROP INDEX uniq_projects0lower')

    def run_ddl(self, statement: str) -> None:
        with db_api.get_placement_engine().begin() as conn:
            conn.exec_driver_sql(statement)

    def test_the_request_is_rejected(self):
        """The request fails after a number of attempts at the same key, before the deadline."""
        provider = self.make_provider({'VCPU': 9})
        for project, status in (('proj', 204), ('Proj', 409), ('other', 204)):
            body = claim({provider: 1}, project=project)
            with self.retries() as retries:
                response = self.send('PUT', f'/allocations/{uuid.uuid4()}', body)
            self.assertEqual(status, response.status, response.body)
            self.assertEqual(9 if status == 409 else 0, len(retries))
