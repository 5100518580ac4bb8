"""Checks of the settings of PostgreSQL."""

from collections.abc import Iterable, Mapping

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import limits
from placement.admin.preflight.model import Verdict, failure, ok, warning

_SETTINGS = sa.table('pg_settings', sa.column('name'), sa.column('setting'))
_ROLES = sa.table('pg_roles', sa.column('rolname'), sa.column('rolconnlimit'))
_DATABASES = sa.table('pg_database', sa.column('datname'), sa.column('datconnlimit'))


def settings(conn: sa.Connection) -> dict[str, str]:
    """Return the settings of a connection; times are in the unit of the setting."""
    return {str(name): str(value) for name, value in conn.execute(sa.select(_SETTINGS))}


def read_writable(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the server accepts writes."""
    is_replica = bool(conn.scalar(sa.select(sa.func.pg_is_in_recovery())))
    return [judge_writable(settings(conn), is_replica)]


def judge_writable(values: Mapping[str, str], is_replica: bool) -> Verdict:
    """Judge whether a server accepts writes.

    :param is_replica: the server applies the changes of another server
    """
    if is_replica:
        return failure('The server is a replica.', 'Connect to the primary server.')
    if values.get('default_transaction_read_only') == 'on':
        return failure(
            'Transactions are read-only (default_transaction_read_only = on).',
            'Disable the setting for the user or the database of the service.',
        )
    return ok('The server accepts writes.')


def read_character_set(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the encoding of the database."""
    return [judge_character_set(settings(conn)['server_encoding'])]


def judge_character_set(encoding: str) -> Verdict:
    """Judge the encoding of the database."""
    if encoding == 'UTF8':
        return ok('The encoding is UTF8.')
    return warning(
        f'The encoding is {encoding}. Names with other characters are rejected.',
        'Move the data to a database with the encoding UTF8.',
    )


def read_session(conn: sa.Connection, _config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the settings of a connection on which the settings of the service were applied."""
    return judge_session(settings(conn))


def judge_session(values: Mapping[str, str]) -> list[Verdict]:
    """Judge whether the server has accepted the settings of the service.

    A proxy between the service and the server can discard them.
    """
    expected = {'default_transaction_isolation': 'read committed', 'client_encoding': 'UTF8'}
    wrong = [
        failure(
            f'{name} is {values.get(name)} instead of {value}.',
            'Check the proxy between the service and the server.',
        )
        for name, value in expected.items()
        if values.get(name) != value
    ]
    return wrong or [ok('Isolation level read committed, client encoding UTF8.')]


def read_limits(conn: sa.Connection, config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the limits of the server for connections."""
    of_role = sa.select(_ROLES.c.rolconnlimit).where(_ROLES.c.rolname == sa.func.current_user())
    of_database = sa.select(_DATABASES.c.datconnlimit).where(
        _DATABASES.c.datname == sa.func.current_database()
    )
    more = conn.scalars(of_role.union_all(of_database)).all()
    return limits.judge(accepted(settings(conn), more), limits.service(config))


def accepted(values: Mapping[str, str], more: Iterable[int] = ()) -> limits.Limits:
    """Return the limits of the server for users without special rights.

    :param more: the limits of the role and of the database; negative if there is none
    """
    reserved = ('superuser_reserved_connections', 'reserved_connections')
    of_server = int(values['max_connections'])
    connections = of_server - sum(int(values.get(name, '0')) for name in reserved)
    return limits.Limits(
        connections=min([connections, *(limit for limit in more if limit >= 0)]),
        # In milliseconds; new in PostgreSQL 14.
        idle_seconds=int(values.get('idle_session_timeout', '0')) // 1000,
        idle_setting='idle_session_timeout',
    )
