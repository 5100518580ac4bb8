"""Run the audit: correct findings as the options demand, and read all findings."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin import progress
from placement.admin.audit import consumers, model, texts, trees
from placement.admin.failure import CannotProceedError
from placement.conf.opts import INCOMPLETE_CONSUMER_ID
from placement.db import engine

ROW_LIMIT = 100


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
        codes = _select(self.only)
        with_servers = [code.name for code in codes if code.needs_servers]
        if self.purge and texts.UNUSED not in {code.name for code in codes}:
            raise CannotProceedError(
                f'--purge deletes the rows of the code {texts.UNUSED}, but --only does not name it.'
            )
        if self.servers is not None and not with_servers:
            needing = ' and '.join(code.name for code in model.CODES if code.needs_servers)
            raise CannotProceedError(
                f'--servers is for the codes {needing}, but --only names neither.'
            )
        if self.servers is None and self.only is not None and with_servers:
            raise CannotProceedError(f'The code {with_servers[0]} needs --servers.')
        return [code for code in codes if self.servers is not None or not code.needs_servers]


def _select(only: Collection[str] | None) -> list[model.Code]:
    names = [code.name for code in model.CODES]
    if unknown := sorted(set(only or ()) - set(names)):
        listed = ', '.join(f"'{name}'" for name in unknown)
        raise CannotProceedError(f'Unknown code {listed}; the codes are {", ".join(names)}.')
    return [code for code in model.CODES if only is None or code.name in only]


def findings(
    conn: sa.Connection,
    only: Collection[str] | None = None,
    row_limit: int = ROW_LIMIT,
    *,
    incomplete_project: str = INCOMPLETE_CONSUMER_ID,
    report: progress.Progress = progress.silent,
) -> tuple[model.Finding, ...]:
    """Return the findings of the audit, without codes that have no finding.

    The number of statements does not depend on the amount of data.

    :param conn: a connection from `engine.snapshot()`, so that all findings are about
        the same state
    :param only: the codes to check; None checks all codes that do not need the servers of Nova
    :param row_limit: the maximum number of rows of each finding
    :param incomplete_project: the option `[placement] incomplete_consumer_project_id`
    :param report: receives the progress
    :raises CannotProceedError: a code in `only` does not exist
    """
    audited = model.Audited(conn, row_limit, incomplete_project)
    return _assembled(_read(Options(only).codes(), audited, report), {})


def run(
    conf: cfg.ConfigOpts, options: Options, report: progress.Progress = progress.silent
) -> tuple[model.Finding, ...]:
    """Correct findings as the options demand, and return all findings.

    :param conf: the configuration, with the project and the user of incomplete consumers
    :raises CannotProceedError: the options are not valid, or the file with the servers
    """
    codes = options.codes()
    servers = {} if options.servers is None else consumers.read_servers(options.servers)
    requested = {model.FIX: options.fix, model.PURGE: options.purge}
    steps = {
        one.correction.order: (one.name, one.correction)
        for one in codes
        if one.correction and requested[one.correction.option]
    }
    changes = {name: one.make(name, conf, report) for _, (name, one) in sorted(steps.items())}
    with engine.snapshot() as conn:
        project = conf.placement.incomplete_consumer_project_id
        found = _read(codes, model.Audited(conn, ROW_LIMIT, project, servers), report)
    return _assembled(found, changes)


def _read(
    codes: Collection[model.Code], audited: model.Audited, report: progress.Progress
) -> dict[str, model.Found]:
    found: dict[str, model.Found] = {}
    trees.permit_any_depth(audited.conn)
    with report('Auditing', len(codes)) as advance:
        for code in codes:
            found[code.name] = code.read(audited)
            advance(1)
    return found


def _assembled(
    found: Mapping[str, model.Found], changes: Mapping[str, list[model.Row]]
) -> tuple[model.Finding, ...]:
    """Return the findings in the order of the report, without codes that have no finding.

    :param found: the findings that exist after the changes, keyed by code
    """
    result = []
    for code in model.CODES:
        left, own = found.get(code.name, model.Found()), changes.get(code.name, [])
        fixed = sum(change.get(model.ALLOCATIONS, 1) for change in own)
        if left.count + fixed:
            rows = (*own, *left.rows)
            result.append(model.Finding(code.name, code.severity, left.count + fixed, fixed, rows))
    return tuple(result)


def exit_status(found: Iterable[model.Finding]) -> int:
    """Return the exit status of the command: 1 if errors are left, otherwise 0."""
    return int(any(one.severity == model.ERROR and one.left for one in found))
