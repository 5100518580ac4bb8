"""Which functional tests run on which database: ``python3 tools/selection.py ENGINE``.

The script prints the regular expression with which ``tools/test.py`` selects the tests of a
database server. All tests run on SQLite. On each server, those tests run whose result can depend on
the server or on its driver. A name is a package, a module, a class, or a test below
``placement.tests.functional``. ``placement/tests/unit/test_selection.py`` checks that each of them
exists.
"""

from collections.abc import Iterable
import sys

_BELOW = r'^placement\.tests\.functional\.'

# The tests on a database are three parts, which run beside each other: these packages, and all
# others.
_PROGRAMS = ('cmd', 'deployment', 'log', 'mistakes', 'openapi', 'report', 'web')
_RACES = ('collations', 'faults', 'races')

# What does not run on MariaDB and PostgreSQL, and why no fault of an engine remains undetected.
# A new test runs on both, unless it is added here.
_NO_STATEMENT = 'The tests execute no SQL statement.'
_PRINTS_ONLY = 'The command prints what the tests in functional/admin read from each database.'
_NO_SERVER = 'The mistakes need no server; test_mistakes_with_a_server needs one.'
_SAME_AS_API = 'The requests are those of the API tests, or lead to the same statements.'
NOT_ON_SERVERS = {
    'cmd.test_demo': _SAME_AS_API,
    'cmd.test_explain': _PRINTS_ONLY,
    'cmd.test_headroom': _PRINTS_ONLY,
    'cmd.test_manage.UsageTest': _NO_STATEMENT,
    'cmd.test_preflight.ConfigurationTest': _NO_STATEMENT,
    'cmd.test_preflight.IdentityTest': _NO_STATEMENT,
    'cmd.test_preflight.ReportTest': 'DataTest and test_preflight_databases check the results.',
    'cmd.test_preflight.UsageTest': _NO_STATEMENT,
    'cmd.test_report.OutputTest': _NO_STATEMENT,
    'cmd.test_transfer.CommandTest.test_refusals': _NO_STATEMENT,
    'examples': _NO_STATEMENT,
    'openapi': _NO_STATEMENT,
    'mistakes.test_mistakes.GuideTest': _NO_STATEMENT,
    'mistakes.test_mistakes.ReportTest.test_debug': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_every_mistake': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_no_command_prints': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_preflight_prints': _NO_SERVER,
    'mistakes.test_mistakes.ReportTest.test_the': _NO_SERVER,
    'telemetry': _NO_STATEMENT,
    'test_direct': _SAME_AS_API,
    'test_example_pages': _SAME_AS_API,
    'test_fuzz': (
        'The documents do not depend on the engine. test_invalid_requests sends unusual values to '
        'each engine.'
    ),
    'test_generators': _NO_STATEMENT,
    'test_mount_prefix': _SAME_AS_API,
    'test_policy_files': _SAME_AS_API,
}

# What runs with mysqlclient, because it depends on the driver. Everything else depends on MariaDB
# alone, and runs with PyMySQL.
_TYPES = 'The driver determines the types of values in rows.'
_ERRORS = 'The driver raises its own exceptions for deadlocks, duplicates, and lost connections.'
ON_MYSQLCLIENT = {
    'admin.audit.test_findings': _TYPES,
    'admin.capacity_metrics.test_reading': _TYPES,
    'admin.transfer.test_round_trip': _TYPES,
    'candidates.test_forecasts': _TYPES,
    'candidates.test_http': _TYPES,
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
    'test_api': _TYPES,
    'test_damaged_rows': _TYPES,
    'test_invalid_requests': 'The driver encodes and quotes the values in statements.',
    'test_last_modified': _TYPES,
    'test_pooled_connections': 'The driver returns connections to the pool.',
    'test_round_trips': 'The driver decides what a message contains.',
}


def parts(database: str) -> dict[str, str]:
    """Return the parts of the tests on a database: the name and the regular expression of each.

    :param database: `sqlite`, or the name of a server in `tools/with_database.py`
    """
    every = pattern(database)
    if database == 'mariadb-mysqlclient':
        return {'all': every}
    programs, races = _any(_PROGRAMS), _any(_RACES)
    return {
        'races': f'{every}{races}',
        'programs': f'{every}{programs}',
        'others': f'{every}(?!{programs}|{races})',
    }


def pattern(database: str) -> str:
    """Return a regular expression for the tests on a database, as `parts` names it."""
    if database == 'sqlite':
        return _BELOW
    if database == 'mariadb-mysqlclient':
        return f'{_BELOW}{_any(ON_MYSQLCLIENT)}'
    return f'{_BELOW}(?!{_any(NOT_ON_SERVERS)})'


def _any(names: Iterable[str]) -> str:
    # A name is a prefix of names of tests. The API tests have names such as `test_api_traits`.
    return '(?:' + '|'.join(name.replace('.', r'\.') for name in names) + ')'


if __name__ == '__main__':
    print(pattern(sys.argv[1]))
