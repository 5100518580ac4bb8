"""Which functional tests run on which database, and in which part of a run.

``tools/test.py`` sets PLACEMENT_TEST_SELECTION to the name of a database or of a part, for example
``postgresql`` or ``postgresql-races``. ``placement.tests.functional`` then loads only the tests of
this selection, and imports only their modules. All tests run on SQLite. On each server, those tests
run whose result can depend on the server or on its driver. A name is a package, a module, a class,
a test, or the beginning of one of them, below ``placement.tests.functional``; the name of a gabbi
file follows ``test_api``. ``placement/tests/unit/test_selection.py`` checks that each of them
exists.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = 'placement.tests.functional.'
FOLDER = Path(__file__).resolve().parents[1] / 'placement' / 'tests' / 'functional'

# The tests on a database are several parts, which run beside each other: these packages, and all
# others. The tests of web servers, of browsers, and of the log run only on SQLite.
_WEB = 'web'
PARTS = {
    _WEB: ('deployment', 'log', 'openapi', 'report', 'web'),
    'programs': ('cmd', 'mistakes'),
    'database': ('admin', 'db', 'faults'),
    'searches': ('candidates', 'objects', 'test_statement'),
    'races': (
        *('collations', 'races'),
        *('test_builds', 'test_fuzz', 'test_generat', 'test_invalid_requests'),
    ),
}
OTHERS = 'others'
# The parts of which the coverage is measured, which takes half as much time again. Each of them
# covers at least 60 branches that neither the unit tests nor the others cover: 288 the searches, 87
# the database tests on MariaDB, 72 the programs on PostgreSQL. The database tests on SQLite would
# add 9. The other parts execute the same code with more data, or in processes without measurement.
_MEASURED = {
    'sqlite': ('programs', 'searches', OTHERS),
    'mariadb': ('programs', 'database'),
    'postgresql': ('programs',),
    'mysql': (),
}

# tools/test.py runs the first ones with clusters. tox -e deployers runs the others.
NEVER = ('galera', 'group_replication', 'deployers')

# What does not run on MariaDB and PostgreSQL, and why no fault of an engine remains undetected.
# A new test runs on both, unless it is added here.
_NO_STATEMENT = 'The tests execute no SQL statement.'
_PRINTS_ONLY = 'The command prints what the tests in functional/admin read from each database.'
_IN_MEMORY = 'The changes are made in a database in memory.'
_NO_SERVER = 'The mistakes need no server; test_mistakes_with_a_server needs one.'
_SAME_AS_API = 'The requests are those of the API tests, or lead to the same statements.'
NOT_ON_SERVERS = {
    'admin.assume.test_changes.ProviderTest': _IN_MEMORY,
    'admin.assume.test_changes.TreeTest': _IN_MEMORY,
    'cmd.test_demo': _SAME_AS_API,
    'cmd.test_drain': _PRINTS_ONLY,
    'cmd.test_explain': _PRINTS_ONLY,
    'cmd.test_headroom': _PRINTS_ONLY,
    'cmd.test_manage.UsageTest': _NO_STATEMENT,
    'cmd.test_preflight.ConfigurationTest': _NO_STATEMENT,
    'cmd.test_preflight.IdentityTest': _NO_STATEMENT,
    'cmd.test_preflight.ReportTest': 'DataTest and test_preflight_databases check the results.',
    'cmd.test_preflight.UsageTest': _NO_STATEMENT,
    'cmd.test_report.OutputTest': _NO_STATEMENT,
    'cmd.test_transfer.CommandTest.test_refusals': _NO_STATEMENT,
    **dict.fromkeys(PARTS[_WEB], 'The tests skip themselves on a server.'),
    'examples': _NO_STATEMENT,
    'mistakes.test_mistakes.GuideTest': _NO_STATEMENT,
    'mistakes.test_mistakes.ReportTest.test_debug': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_every_mistake': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_no_command_prints': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_preflight_prints': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_the': _NO_SERVER,
    'telemetry': _NO_STATEMENT,
    'test_builds': _NO_STATEMENT,
    'test_invalid_requests.InvalidRequestsTest.test_bodies_without': _NO_STATEMENT,
    'test_invalid_requests.InvalidRequestsTest.test_content_length': _NO_STATEMENT,
    'test_invalid_requests.InvalidRequestsTest.test_invalid_headers': _NO_STATEMENT,
    'test_invalid_requests.InvalidRequestsTest.test_invalid_methods': _NO_STATEMENT,
    'test_invalid_requests.InvalidRequestsTest.test_missing_and_repeated': (
        'test_invalid_values sends the same values at the same places.'
    ),
    'test_invalid_requests.InvalidRequestsTest.test_several_invalid_headers': _NO_STATEMENT,
    'test_direct': _SAME_AS_API,
    'test_example_pages': _SAME_AS_API,
    'test_fuzz': (
        'The documents do not depend on the engine. test_invalid_requests sends unusual values to '
        'each engine.'
    ),
    'test_generators': _NO_STATEMENT,
    'test_mount_prefix': _SAME_AS_API,
    'test_policy_files': _SAME_AS_API,
    'test_recipes': _SAME_AS_API,
    'test_request_forms': _SAME_AS_API,
}

# What does not run on PostgreSQL either. MariaDB runs the API tests completely.
_BEFORE_THE_DATABASE = 'The response is determined before or after the statements.'
_READ_THERE = 'The tests in functional/admin execute the statements on PostgreSQL.'
_READ_HERE = 'test_the_page_contains_what_the_api_returns executes the same statements.'
NOT_ON_POSTGRESQL = {
    'admin.capacity_metrics.test_random_worlds': 'test_reading executes the same statements.',
    'admin.test_damaged_worlds': 'test_reading and test_report execute the same statements.',
    'cmd.test_audit': _READ_THERE,
    'cmd.test_exporter.OnceTest': _READ_THERE,
    'cmd.test_exporter.ServeTest': _READ_THERE,
    'cmd.test_report.ContentTest.test_a': _READ_HERE,
    'cmd.test_report.ContentTest.test_damaged': _READ_HERE,
    'cmd.test_report.ContentTest.test_names': _READ_HERE,
    'cmd.test_report.ContentTest.test_the_number': _READ_HERE,
    'cmd.test_report.ContentTest.test_the_password': _READ_HERE,
    'cmd.test_status': 'cmd.test_preflight executes the same checks.',
    'cmd.test_transfer.CommandTest': _READ_THERE,
    'test_api.authentication': _BEFORE_THE_DATABASE,
    'test_api.candidates-grammar': _BEFORE_THE_DATABASE,
    'test_api.cors': _BEFORE_THE_DATABASE,
    'test_api.error-codes': _SAME_AS_API,
    'test_api.error-texts': _SAME_AS_API,
    'test_api.examples': _SAME_AS_API,
    'test_api.failures': _BEFORE_THE_DATABASE,
    'test_api.guide': _SAME_AS_API,
    'test_api.keystone': _BEFORE_THE_DATABASE,
    'test_api.microversion-negotiation': _BEFORE_THE_DATABASE,
    'test_api.order-of': _BEFORE_THE_DATABASE,
    'test_api.policy': _BEFORE_THE_DATABASE,
    'test_api.proxy': _BEFORE_THE_DATABASE,
    'test_api.repeated-parameters': _BEFORE_THE_DATABASE,
    'test_api.request': _BEFORE_THE_DATABASE,
    'test_api.routes': _BEFORE_THE_DATABASE,
    'test_api.version-document': _BEFORE_THE_DATABASE,
}

# What runs with mysqlclient, because it depends on the driver. Everything else depends on MariaDB
# alone, and runs with PyMySQL.
_TYPES = 'The driver determines the types of values in rows.'
_QUOTES = 'The driver encodes and quotes the values in statements.'
_ERRORS = 'The driver raises its own exceptions for deadlocks, duplicates, and lost connections.'
ON_MYSQLCLIENT = {
    'admin.audit.test_findings': _TYPES,
    'admin.capacity_metrics.test_reading': _TYPES,
    'admin.transfer.test_round_trip': _TYPES,
    'candidates.test_forecasts': _TYPES,
    'cmd.test_preflight_databases': 'The check examines the driver and its options.',
    'collations.test_character_sets': 'The driver selects the character set of a connection.',
    'db.test_migration': 'The driver starts and ends transactions.',
    'db.test_online_data_migrations': 'The driver counts the changed rows.',
    'db.test_session_settings': 'The driver sets the session.',
    'db.test_sync': _ERRORS,
    'faults': _ERRORS,
    'mistakes.test_mistakes.ReportTest.test_mistakes_with_a_server': _ERRORS,
    'objects.test_capacity': _TYPES,
    'races.test_claims': _ERRORS,
    'races.test_interleavings': _ERRORS,
    'races.test_missing_rows': _ERRORS,
    'races.test_new_consumer': _ERRORS,
    'test_api.aggregates': _TYPES,
    'test_api.allocations': _TYPES,
    'test_api.caching': _TYPES,
    'test_api.candidates-nested': _TYPES,
    'test_api.candidates-sharing': _TYPES,
    'test_api.capacity': _TYPES,
    'test_api.consumer': _TYPES,
    'test_api.inventories': _TYPES,
    'test_api.nul-characters': _TYPES,
    'test_api.reshaper': _TYPES,
    'test_api.resource': _TYPES,
    'test_api.traits': _TYPES,
    'test_api.trees': _TYPES,
    'test_api.unicode': _TYPES,
    'test_api.usages': _TYPES,
    'test_api.uuid-forms': _TYPES,
    'test_damaged_rows': _TYPES,
    'test_invalid_requests.InvalidRequestsTest.test_invalid_paths': _QUOTES,
    'test_invalid_requests.InvalidRequestsTest.test_invalid_queries': _QUOTES,
    'test_invalid_requests.InvalidRequestsTest.test_invalid_values': _QUOTES,
    'test_last_modified': _TYPES,
    'test_pooled_connections': 'The driver returns connections to the pool.',
    'test_round_trips': 'The driver decides what a message contains.',
}

# What every run repeats on MySQL, in a single part. `tox -e mysql` runs all that runs on MariaDB.
_DIALECT = 'The statements or the variables of MySQL are others than those of MariaDB.'
_NAMES = 'MySQL has collations of its own, and reports characters that it cannot store otherwise.'
_LOCKS = 'MySQL decides which transaction waits, and which one it ends.'
ON_MYSQL = {
    'cmd.test_preflight_databases': _DIALECT,
    'collations.test_character_sets': _NAMES,
    'collations.test_names.BinTest': _NAMES,
    'collations.test_names.ThreeBytesTest': _NAMES,
    'collations.test_names.Uca900Test': _NAMES,
    'db.test_character_set': _NAMES,
    'db.test_migration': _DIALECT,
    'db.test_online_data_migrations': _DIALECT,
    'db.test_session_settings': _DIALECT,
    'db.test_sync': _LOCKS,
    'faults.test_switchover': 'MySQL has privileges and error numbers of its own.',
    'faults.test_tls': _DIALECT,
    'races.test_claims': _LOCKS,
    'races.test_interleavings': _LOCKS,
    'races.test_new_consumer': _LOCKS,
}

_EXCLUDED = {
    'sqlite': NEVER,
    'mariadb': (*NEVER, *NOT_ON_SERVERS),
    'mysql': (*NEVER, *NOT_ON_SERVERS),
    'postgresql': (*NEVER, *NOT_ON_SERVERS, *NOT_ON_POSTGRESQL),
}

# The parts of the databases on which the run repeats only some tests.
_SINGLE_PARTS = {'mariadb-mysqlclient': ON_MYSQLCLIENT, 'mysql-bounded': ON_MYSQL}


@dataclass(frozen=True, slots=True)
class Selection:
    """The tests whose names begin with one of the included names, without the excluded ones.

    :ivar included: names without `PACKAGE`; an empty text includes every test
    """

    included: Sequence[str]
    excluded: Sequence[str] = ()

    def __contains__(self, test: str) -> bool:
        """Return whether the selection contains a test, from its ID."""
        if not test.startswith(PACKAGE):
            return True  # the failed import of a module
        name = test.removeprefix(PACKAGE)
        return name.startswith(tuple(self.included)) and not name.startswith(tuple(self.excluded))

    def modules(self) -> Iterator[str]:
        """Yield the modules that can contain a selected test."""
        for path in sorted(FOLDER.rglob('test_*.py')):
            name = '.'.join(path.relative_to(FOLDER).with_suffix('').parts)
            if name.startswith(tuple(self.excluded)):
                continue
            if any(name.startswith(one) or one.startswith(f'{name}.') for one in self.included):
                yield PACKAGE + name


def parts(database: str) -> list[str]:
    """Return the names of the parts of the tests on a database.

    :param database: `sqlite`, or the name of a server in `tools/with_database.py`
    """
    single = [part for part in _SINGLE_PARTS if part in (database, f'{database}-bounded')]
    if single:
        return single
    return [
        f'{database}-{part}' for part in (*PARTS, OTHERS) if database == 'sqlite' or part != _WEB
    ]


def is_measured(name: str) -> bool:
    """Return whether to measure the coverage of a part, as `parts` names it."""
    database, _, part = name.partition('-')
    return part in _MEASURED[database]


def named(name: str) -> Selection:
    """Return a selection: all tests on a database, or a part of them, as `parts` names it."""
    if name in _SINGLE_PARTS:
        return Selection(tuple(_SINGLE_PARTS[name]))
    database, _, part = name.partition('-')
    excluded = _EXCLUDED[database]
    if part == OTHERS:
        return Selection(('',), (*excluded, *(one for names in PARTS.values() for one in names)))
    return Selection(PARTS[part] if part else ('',), excluded)
