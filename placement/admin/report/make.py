"""Makes a report: reads the database, and renders the page."""

from collections.abc import Sequence
import dataclasses
from dataclasses import dataclass

import sqlalchemy as sa

from placement.admin import audit
from placement.admin.drain.reading import all_trees
from placement.admin.names import Names
from placement.admin.progress import Progress
from placement.admin.report import document, page, read, trees
from placement.admin.report.model import Cloud, Origin


@dataclass(frozen=True, slots=True)
class Contents:
    """What a report shows."""

    origin: Origin
    cloud: Cloud
    findings: Sequence[audit.Finding]


def contents(
    conn: sa.Connection,
    database: str,
    incomplete_project: str,
    progress: Progress,
    names: Names,
    with_drains: bool = False,
) -> Contents:
    """Return what the report shows.

    :param conn: a connection from `engine.snapshot()`, so that all parts of the page
        show the same state
    :param database: the URL of the database; the page shows it without its password
    :param incomplete_project: the option `[placement] incomplete_consumer_project_id`
    :param names: the names that stand before UUIDs
    :param with_drains: whether to show which trees can be drained
    :raises CannotProceedError: `with_drains`, and the consumer of an allocation does not exist
    """
    findings = audit.findings(conn, incomplete_project=incomplete_project, report=progress)
    cloud = read.cloud(conn, progress, names)
    if with_drains:
        drains = {one.trees[0].uuid: one for one in all_trees(conn, progress)}
        cloud = dataclasses.replace(cloud, drains=drains)
    return Contents(
        read.origin(conn, database),
        cloud,
        [names.in_values(finding) for finding in findings],
    )


def html(shown: Contents, progress: Progress) -> bytes:
    """Return the page in UTF-8."""
    with progress('Rendering', 3) as advance:
        found = trees.of_cloud(shown.cloud)
        advance(1)
        documents = {
            'data': document.build(shown.cloud, found),
            'consumers': document.consumers(shown.cloud, found),
        }
        advance(1)
        text = page.render(shown.cloud, found, documents, shown.findings, shown.origin)
        advance(1)
    return text.encode()
