"""All checks, in the order of the report."""

from placement.admin import upgrade_checks
from placement.admin.preflight import (
    configuration,
    database,
    galera,
    identity,
    metrics,
    mysql,
    policy_files,
    postgresql,
    privileges,
    schema,
    sqlite,
    token_cache,
)
from placement.admin.preflight.model import Check

_VALUES = 'Option Values'
_POLICY = 'Policy Files'
_DRIVER = 'Database Driver'
_CONNECTION = 'Database Connection'
_ACCESS = 'Database Access'
_KEYSTONE = 'Keystone Options'
_CREDENTIALS = 'Service Credentials'

_CONFIGURATION = (
    Check('Configuration Files', configuration.check_files),
    Check('Option Names', configuration.check_names),
    Check('Deprecated Options', configuration.check_deprecated),
    Check(_VALUES, configuration.check_values),
    Check('Authentication Strategy', configuration.check_authentication),
    Check('Debug Logging', configuration.check_debug),
    Check('Proxy Headers', configuration.check_proxy_headers),
    Check('Health Checks', configuration.check_health),
    Check('Metrics', metrics.check),
)

_POLICIES = (
    Check(_POLICY, policy_files.check_files),
    Check('Policy Rules', policy_files.check_rules, needs=(_POLICY,)),
    Check(upgrade_checks.POLICY_FORMAT, schema.check_policy_format),
)

_DATABASE = (
    Check(_DRIVER, database.check_driver),
    Check(_CONNECTION, database.check_connection, needs=(_DRIVER,)),
    Check('Replica Connection', database.check_replica, needs=(_DRIVER,)),
    Check(
        _ACCESS,
        database.for_engine(
            {
                'mysql': mysql.read_writable,
                'postgresql': postgresql.read_writable,
                'sqlite': sqlite.read_writable,
            }
        ),
        needs=(_CONNECTION,),
    ),
    Check(
        'Database Privileges',
        database.for_engine({'mysql': privileges.read, 'postgresql': privileges.read}),
        needs=(_ACCESS,),
    ),
    Check(
        'Character Set',
        database.for_engine(
            {'mysql': mysql.read_character_set, 'postgresql': postgresql.read_character_set}
        ),
        needs=(_CONNECTION,),
    ),
    Check(
        'Storage Engine',
        database.for_engine({'mysql': mysql.read_storage_engine}),
        needs=(_CONNECTION,),
    ),
    Check(
        'Binary Log Format',
        database.for_engine({'mysql': mysql.read_binary_log}),
        needs=(_CONNECTION,),
    ),
    Check(
        'Session Settings',
        database.for_engine(
            {'mysql': mysql.read_session, 'postgresql': postgresql.read_session}, as_service=True
        ),
        needs=(_CONNECTION,),
    ),
    Check(
        'Connection Limits',
        database.for_engine({'mysql': mysql.read_limits, 'postgresql': postgresql.read_limits}),
        needs=(_CONNECTION,),
    ),
    Check('Galera Cluster', database.for_engine({'mysql': galera.read}), needs=(_CONNECTION,)),
    Check(
        'Replication Group', database.for_engine({'mysql': mysql.read_group}), needs=(_CONNECTION,)
    ),
    Check('Schema Revision', schema.check_revision, needs=(_CONNECTION,)),
    Check(
        upgrade_checks.ROOT_PROVIDERS,
        schema.check_data(upgrade_checks.Checks.check_root_provider_ids),
        needs=(_CONNECTION,),
    ),
    Check(
        upgrade_checks.CONSUMERS,
        schema.check_data(upgrade_checks.Checks.check_incomplete_consumers),
        needs=(_CONNECTION,),
    ),
)

_IDENTITY = (
    Check(_KEYSTONE, identity.check_options),
    Check('Keystone Endpoints', identity.check_endpoints, needs=(_KEYSTONE,)),
    Check(_CREDENTIALS, identity.check_credentials, needs=(_KEYSTONE,)),
    Check('Identity Endpoint', identity.check_identity_endpoint, needs=(_CREDENTIALS,)),
    Check('Service Catalog', identity.check_catalog, needs=(_CREDENTIALS,)),
    Check('Token Cache', token_cache.check, needs=(_KEYSTONE,)),
)

CHECKS = (*_CONFIGURATION, *_POLICIES, *_DATABASE, *_IDENTITY)
