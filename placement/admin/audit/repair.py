"""Correct findings, and then read the findings that are left."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from oslo_config import cfg

from placement.admin.audit import (
    checks,
    fix_consumers,
    fix_providers,
    fix_references,
    generations,
    model,
    purge,
    servers,
)
from placement.admin.failure import CannotProceedError
from placement.admin.progress import Progress, silent
from placement.db import engine

Fix = Callable[[cfg.ConfigOpts, Progress], list[model.Change]]

# The corrections in their order. Each of them can make the next one necessary: a provider that
# becomes a root is the root of its subtree, and a consumer whose orphaned allocations are deleted
# can be without allocations.
FIXES: tuple[tuple[str, Fix], ...] = (
    (model.PARENT_MISSING, fix_providers.make_roots),
    (model.ROOT_MISSING, fix_providers.set_roots),
    (model.ORPHAN_PROVIDER, fix_references.delete_rows),
    (model.ORPHAN_ALLOCATION, fix_consumers.create_missing),
    (model.IDLE_CONSUMER, fix_consumers.delete_idle),
    (model.NULL_GENERATION, generations.set_missing),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command.

    :param only: the codes to check; None checks all codes
    :param fix: whether to correct the findings that have a safe correction
    :param purge: whether to delete unused rows
    :param servers: the file with all servers of Nova; None leaves out the codes that need it
    """

    only: Collection[str] | None = None
    fix: bool = False
    purge: bool = False
    servers: str | None = None


def check_options(options: Options) -> None:
    """Check the options before anything is read or changed.

    :raises CannotProceedError: a code does not exist, the codes do not include `unused` although
        the unused rows are to be deleted, or the servers are given without a code that needs them,
        or such a code without the servers
    """
    codes = set(model.select_codes(options.only))
    if options.purge and model.UNUSED not in codes:
        raise CannotProceedError(
            f'--purge deletes the rows of the code {model.UNUSED}, but --only does not name it.'
        )
    named = [code for code in servers.CODES if code in (options.only or ())]
    if options.servers is None and named:
        raise CannotProceedError(f'The code {named[0]} needs --servers.')
    if options.servers is not None and codes.isdisjoint(servers.CODES):
        raise CannotProceedError(
            f'--servers is for the codes {" and ".join(servers.CODES)}, but --only names neither.'
        )


def run(
    conf: cfg.ConfigOpts, options: Options, report: Progress = silent
) -> tuple[model.Finding, ...]:
    """Correct findings as the options demand, and return all findings.

    :param conf: the configuration, with the project and the user of incomplete consumers
    :raises CannotProceedError: for the same reasons as in `check_options`, or the file with the
        servers is not valid
    """
    check_options(options)
    of_nova = None if options.servers is None else servers.read_file(options.servers)
    codes = model.select_codes(options.only)
    changes: list[model.Change] = []
    if options.fix:
        for code, fix in FIXES:
            if code in codes:
                changes += fix(conf, report)
    if options.purge:
        changes += purge.purge(report)
    with engine.snapshot() as conn:
        found = checks.read(
            conn,
            codes,
            checks.ROW_LIMIT,
            incomplete_project=conf.placement.incomplete_consumer_project_id,
            report=report,
            of_nova=of_nova,
        )
    return model.assemble(found, changes, checks.ROW_LIMIT)
