"""Run the audit: correct findings as the options demand, and read all findings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
import functools
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin import console
from placement.admin.audit import model, providers
from placement.admin.console import CannotProceedError
from placement.conf.opts import INCOMPLETE_CONSUMER_ID
from placement.db import engine

# The findings that one transaction corrects. It writes at most twice as many rows, because a
# correction can also touch the parent of a provider.
BATCH = 500
_REMEDY = 'Write it with `openstack server list --all-projects --limit -1 -f json`.'


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command.

    :ivar only: the codes to check; None checks all codes
    :ivar fix: whether to correct the findings that have a safe correction
    :ivar purge: whether to delete unused rows
    :ivar servers: the file with all servers of Nova; None leaves out the codes that need it
    """

    only: Collection[str] | None = None
    fix: bool = False
    purge: bool = False
    servers: str | None = None

    def codes(self) -> list[model.Code]:
        """Return the codes to check, in the order of the report.

        :raises CannotProceedError: a code does not exist, or it does not go with another option
        """
        codes, has_servers = model.CODES.values(), self.servers is not None
        only = self.only
        if only is None:
            return [code for code in codes if has_servers or code.option != model.SERVERS]
        if unknown := sorted(set(only) - model.CODES.keys()):
            listed = ', '.join(f"'{name}'" for name in unknown)
            raise CannotProceedError(
                f'Unknown code {listed}; the codes are {", ".join(model.CODES)}.'
            )
        for option, is_given in ((model.PURGE, self.purge), (model.SERVERS, has_servers)):
            own = [code.name for code in codes if code.option == option]
            named = [name for name in own if name in only]
            if is_given and not named:
                raise CannotProceedError(f'With {option}, --only must name {" or ".join(own)}.')
            if named and not has_servers and option == model.SERVERS:
                raise CannotProceedError(f'The code {named[0]} needs --servers.')
        return [code for code in codes if code.name in only]


def findings(
    conn: sa.Connection,
    only: Collection[str] | None = None,
    incomplete_project: str = INCOMPLETE_CONSUMER_ID,
    report: console.Progress = console.silent,
) -> tuple[model.Finding, ...]:
    """Return the findings of the audit, without codes that have no finding.

    The number of statements does not depend on the amount of data.

    :param conn: a connection from `engine.snapshot()`, so that all findings are about
        the same state
    :param only: the codes to check; None checks all codes that do not need the servers of Nova
    :param incomplete_project: the option `[placement] incomplete_consumer_project_id`
    :param report: receives the progress
    :raises CannotProceedError: a code in `only` does not exist
    """
    return _read(Options(only).codes(), model.Audited(conn, incomplete_project), report, {})


def run(
    conf: cfg.ConfigOpts, options: Options, report: console.Progress = console.silent
) -> tuple[model.Finding, ...]:
    """Correct findings as the options demand, and return all findings.

    :param conf: the configuration, with the project and the user of incomplete consumers
    :raises CannotProceedError: the options are not valid, or the file with the servers
    """
    codes = options.codes()
    servers = dict(console.rows(options.servers, _REMEDY)) if options.servers is not None else {}
    requested = {model.FIX: options.fix, model.PURGE: options.purge}
    steps = [code for code in codes if code.fixes and requested[code.option]]
    steps.sort(key=lambda code: code.order)
    changes = {code.name: _correct(code, conf, report) for code in steps}
    with engine.snapshot() as conn:
        project = conf.placement.incomplete_consumer_project_id
        return _read(codes, model.Audited(conn, project, servers), report, changes)


def _correct(code: model.Code, conf: cfg.ConfigOpts, report: console.Progress) -> list[model.Row]:
    """Correct the findings of a code, `BATCH` of them in a transaction, and return the changes.

    If a concurrent request makes a correction impossible, for example because it moves a provider,
    the next round corrects the finding. The rounds end when nothing is found, or the same as
    before.
    """
    changes: list[model.Row] = []
    for select, work in code.fixes:
        before: Sequence[Any] = ()
        while (keys := _keys(select)) and keys != before:
            before = keys
            with report(f'Correcting {code.name}', len(keys)) as advance:
                for start in range(0, len(keys), BATCH):
                    batch = model.Batch(keys[start : start + BATCH], conf)
                    changes += engine.write(functools.partial(work, batch))
                    advance(len(batch.keys))
    return changes


def _keys(select: sa.Select[Any]) -> Sequence[Any]:
    with engine.snapshot() as conn:
        providers.permit_any_depth(conn)
        return conn.execute(select).all()


def _read(
    codes: Collection[model.Code],
    audited: model.Audited,
    report: console.Progress,
    changes: Mapping[str, list[model.Row]],
) -> tuple[model.Finding, ...]:
    """Return the findings of the codes, without codes that have no finding.

    :param changes: what was corrected before, by code
    """
    result = []
    providers.permit_any_depth(audited.conn)
    with report('Auditing', len(codes)) as advance:
        for code in codes:
            (left, rows), own = code.check(audited), changes.get(code.name, [])
            fixed = sum(change.get(model.ALLOCATIONS, 1) for change in own)
            if left or fixed:
                counts = left + fixed, fixed
                result.append(model.Finding(code.name, code.severity, *counts, (*own, *rows)))
            advance(1)
    return tuple(result)
