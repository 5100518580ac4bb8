"""Drains trees one after another, each from the present state: does N+1 hold?"""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from placement.admin.drain import reading
from placement.admin.drain.plan import Move
from placement.admin.drain.reading import Options
from placement.admin.drain.report import Drain, Planner
from placement.admin.drain.requests import Cloud
from placement.admin.progress import Progress


def each(
    conn: sa.Connection,
    cloud: Cloud,
    planner: Planner,
    roots: Sequence[int],
    progress: Progress,
) -> Iterator[tuple[Drain, Sequence[Move]]]:
    """Yield the result of each tree with its moves, in the order of the roots.

    :param roots: the ids of the roots; none for all trees with allocations
    :raises CannotProceedError: a consumer does not exist
    """
    drained = roots or list(cloud.anchors)
    with progress('Planning drains', len(drained)) as advance:
        for page in reading.pages_of_trees(conn, cloud, drained):
            for root, consumers in page.items():
                if consumers or roots:
                    yield planner.drain(consumers, frozenset({root}))
                advance(1)


def all_trees(conn: sa.Connection, progress: Progress) -> list[Drain]:
    """Return the result of each tree with allocations, without conditions.

    :raises CannotProceedError: a consumer does not exist
    """
    cloud, conditions = reading.cloud(conn, Options(), progress)
    planner = Planner(cloud, conditions)
    return [drain for drain, _ in each(conn, cloud, planner, (), progress)]
