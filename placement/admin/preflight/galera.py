"""Checks of a node of a Galera cluster."""

from collections.abc import Mapping

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import database
from placement.admin.preflight.model import Verdict, failure, ok, skipped, warning
from placement.db import connections


def read(conn: sa.Connection, config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the settings and the state of a node."""
    return judge(
        database.variables(conn, 'SHOW GLOBAL VARIABLES'),
        database.variables(conn, "SHOW GLOBAL STATUS LIKE 'wsrep%%'"),
        config.placement_database.mysql_wsrep_sync_wait,
    )


def judge(
    settings: Mapping[str, str], status: Mapping[str, str], sync_wait: int | None
) -> list[Verdict]:
    """Judge a node of a cluster.

    :param settings: the global variables of the server
    :param status: the status variables of the server
    :param sync_wait: the option `[placement_database] mysql_wsrep_sync_wait`
    """
    if settings.get('wsrep_on', 'OFF').upper() != 'ON':
        return [skipped('The server is not a node of a Galera cluster.')]
    verdicts = [
        *_judge_state(status),
        *_judge_settings(settings),
        *_judge_waits(settings, sync_wait),
        *_judge_size(int(status.get('wsrep_cluster_size', '0'))),
    ]
    size = status.get('wsrep_cluster_size')
    return verdicts or [ok(f'The node is part of the primary component with {size} members.')]


def _judge_state(status: Mapping[str, str]) -> list[Verdict]:
    verdicts = []
    component = status.get('wsrep_cluster_status', 'unknown')
    if component.upper() != 'PRIMARY':
        verdicts.append(
            failure(
                f'The node is not part of the primary component (wsrep_cluster_status = '
                f'{component}).',
                'Restore the connection of the node to the cluster.',
            )
        )
    if (ready := status.get('wsrep_ready', 'unknown').upper()) != 'ON':
        verdicts.append(
            failure(
                f'The node rejects queries (wsrep_ready = {ready}).',
                'Wait until the node is synchronized, or examine its log.',
            )
        )
    state = status.get('wsrep_local_state_comment', 'unknown')
    if state != 'Synced':
        verdicts.append(
            warning(
                f'The node is not synchronized (wsrep_local_state_comment = {state}).',
                'Wait until the node is synchronized.',
            )
        )
    return verdicts


def _judge_settings(settings: Mapping[str, str]) -> list[Verdict]:
    required = {'innodb_autoinc_lock_mode': '2', 'binlog_format': 'ROW'}
    return [
        failure(
            f'{name} is {settings.get(name)}, which Galera does not support.',
            f'Set {name} to {value} on every node.',
        )
        for name, value in required.items()
        if settings.get(name, value).upper() != value
    ]


def _judge_waits(settings: Mapping[str, str], sync_wait: int | None) -> list[Verdict]:
    verdicts = []
    if sync_wait is not None and not connections.is_sufficient(sync_wait):
        verdicts.append(
            failure(
                f'mysql_wsrep_sync_wait is {sync_wait}, so that responses can contain outdated '
                'data.',
                'Remove the option [placement_database] mysql_wsrep_sync_wait, or set it to '
                f'{sync_wait | connections.SYNC_WAIT_BITS}.',
            )
        )
    if settings.get('wsrep_dirty_reads', 'OFF').upper() == 'ON':
        verdicts.append(
            warning(
                'wsrep_dirty_reads is ON, so that a node outside of the primary component '
                'returns outdated data.',
                'Set wsrep_dirty_reads to OFF.',
            )
        )
    return verdicts


def _judge_size(size: int) -> list[Verdict]:
    if size == 1:
        return [
            warning('The cluster has one member, so that nothing replaces it.', 'Add two nodes.')
        ]
    if size % 2 == 0 and size:
        return [
            warning(
                f'The cluster has {size} members. If its halves lose their connection, neither '
                'of them is the primary component.',
                'Add a node, or an arbitrator (garbd).',
            )
        ]
    return []
