"""Read all findings from one snapshot of the database."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import sqlalchemy as sa

from placement.admin import progress
from placement.admin.audit import (
    consumers,
    generations,
    model,
    providers,
    references,
    rows,
    servers,
    texts,
    unused,
)
from placement.conf.opts import INCOMPLETE_CONSUMER_ID

ROW_LIMIT = 100

# The checks that only count and read the rows of selects.
_SELECTS: Mapping[str, Callable[[], references.Selects]] = {
    model.ORPHAN_ALLOCATION: references.orphan_allocations,
    model.ORPHAN_PROVIDER: references.orphan_provider_rows,
    model.UNKNOWN_CLASS: references.unknown_classes,
    model.NO_INVENTORY: references.without_inventory,
    model.OVER_CAPACITY: references.over_capacity,
    model.IDLE_CONSUMER: consumers.idle,
    model.OWNER_MISSING: consumers.without_owner,
    model.SEVERAL_TREES: consumers.in_several_trees,
    model.NULL_GENERATION: generations.missing,
    model.UNUSED: unused.rows,
}


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
    :param only: the codes to check; None checks all codes
    :param row_limit: the maximum number of rows of each finding
    :param incomplete_project: the option `[placement] incomplete_consumer_project_id`
    :param report: receives the progress
    :raises CannotProceedError: a code in `only` does not exist
    """
    found = read(conn, only, row_limit, incomplete_project=incomplete_project, report=report)
    return model.assemble(found, row_limit=row_limit)


def read(
    conn: sa.Connection,
    only: Collection[str] | None,
    row_limit: int,
    *,
    incomplete_project: str,
    report: progress.Progress = progress.silent,
    of_nova: Mapping[str, model.Row] | None = None,
) -> dict[str, model.Found]:
    """Like `findings`, but return the results of the checks keyed by code.

    :param of_nova: the result of `servers.read_file`; None leaves out the codes that need it
    """
    left_out = servers.CODES if of_nova is None else ()
    codes = [code for code in model.select_codes(only) if code not in left_out]
    found: dict[str, model.Found] = {}
    with report('Auditing', len(codes)) as advance:
        for code in codes:
            if code in servers.CODES and of_nova is not None and code not in found:
                found.update(servers.read_findings(conn, of_nova, row_limit))
            elif code not in found:
                found.update(_check(conn, code, row_limit, incomplete_project))
            advance(1)
    return {code: found[code] for code in codes}


def _check(
    conn: sa.Connection, code: str, row_limit: int, incomplete_project: str
) -> Mapping[str, model.Found]:
    """Return the results of the check that finds a code; a check may find several codes."""
    if code in providers.CODES:
        return providers.read_findings(conn, row_limit)
    if code == model.DUPLICATE_NAME:
        return {code: texts.read_duplicates(conn, row_limit)}
    if code == model.INCOMPLETE_CONSUMER:
        selects: Any = consumers.of_project(incomplete_project)
    else:
        selects = _SELECTS[code]()
    return {code: rows.read(conn, selects, row_limit)}
