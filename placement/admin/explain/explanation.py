"""Runs the steps of an explanation on one snapshot of the database."""

from dataclasses import dataclass

import sqlalchemy as sa

from placement.admin import query_text
from placement.admin.explain import conditions, evidence, search
from placement.admin.explain.evidence import Fact, GroupFunnel, Lack, RootFunnel
from placement.admin.explain.search import Relaxation, Trees
from placement.admin.headroom import reading
from placement.admin.progress import Progress
from placement.candidates import names as names_of_queries
from placement.candidates import request
from placement.candidates.selection import Budget
from placement.db.sqlalchemy import models
from placement.microversion import Version

# The number of nearest trees that are compared, so that equal ones share a line.
COMPARED = 1_000
_NAMES = sa.select(models.resource_providers.c.id, models.resource_providers.c.name)


@dataclass(frozen=True, slots=True)
class Subject:
    """What to explain.

    :ivar text: the query as the operator wrote it
    :ivar max_steps: the search limit; negative for no limit
    :ivar nearest: the maximum number of nearest trees
    """

    text: str
    version: Version
    max_steps: int
    nearest: int


@dataclass(frozen=True, slots=True)
class NearTree:
    """A tree, and the conditions that fail in it on their own."""

    name: str
    uuid: str
    failures: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a query has no candidates.

    :ivar candidates: the trees that have candidates for the query as it is
    :ivar hosts: the names of these trees, in a list for each kind (see `evidence.equal_hosts`)
    :ivar nested: below microversion 1.29, the trees that have candidates from 1.29 on; else None
    :ivar conditions: the keys of all conditions
    :ivar relaxations: the relaxations, and the sets whose search reached the search limit
    :ivar lack: the host that lacks the smallest part of an amount, and nothing else
    :ivar pairs_omitted: whether pairs of conditions were not judged, because the query has too many
        conditions
    :ivar nearest: the trees in which the fewest conditions fail, and more for comparison
    :ivar listed: the maximum number of nearest trees to list
    :ivar near: the number of trees in which as few conditions fail
    """

    query: str
    microversion: str
    candidates: Trees
    hosts: list[list[str]]
    nested: Trees | None
    conditions: tuple[str, ...]
    relaxations: tuple[Relaxation, ...]
    lack: Lack | None
    pairs_omitted: bool
    funnel: tuple[GroupFunnel, ...]
    roots: RootFunnel
    nearest: tuple[NearTree, ...]
    listed: int
    near: int


def explain(conn: sa.Connection, subject: Subject, progress: Progress) -> Explanation:
    """Return the explanation of a query.

    :param conn: a connection on which all statements read the same snapshot of the database
    :raises failure.CannotProceedError: the API refuses the query, or a class or trait of the query
        does not exist
    """
    named = query_text.parse(subject.text, subject.version)
    with reading.refusing(''):
        ids = names_of_queries.look_up(conn, named)
        query = request.with_ids(named, ids)
    anchors = reading.anchors(conn, query, ids.sharing_id, progress)
    names = {id_: name or '' for id_, name in conn.execute(_NAMES)}
    pairs = query_text.pairs(subject.text)
    every = conditions.conditions_of(pairs, subject.version, named)
    searched = search.search_of(every, ids, query.nested, anchors, progress)
    with progress('Searching candidates') as advance:
        candidates = searched.trees((), Budget(subject.max_steps), advance)
    needs_relaxations = not (candidates.count or candidates.cut)
    relaxations: tuple[Relaxation, ...] = ()
    if needs_relaxations:
        relaxations = tuple(searched.relaxations(subject.max_steps, progress))
    near = evidence.nearest(searched, subject.nearest, names)
    by_id = {anchor.root.id: anchor for anchor in anchors}
    fitting = [by_id[id_] for id_ in candidates.roots]
    return Explanation(
        query=subject.text,
        microversion=str(subject.version),
        candidates=candidates,
        hosts=evidence.equal_hosts(fitting, query.classes, names),
        nested=None if query.nested else searched.trees((), Budget(subject.max_steps), nested=True),
        conditions=tuple(condition.key for condition in every),
        relaxations=relaxations,
        lack=evidence.smallest_lack(searched, relaxations, by_id, names),
        pairs_omitted=needs_relaxations and searched.omits_pairs(relaxations),
        funnel=evidence.of_groups(query, named, anchors),
        roots=evidence.of_roots(query, searched, candidates),
        nearest=tuple(
            NearTree(
                names[anchor.root.id],
                anchor.root.uuid,
                evidence.facts(searched, failures, anchor, names),
            )
            for failures, anchor in near[: max(subject.nearest, COMPARED)]
        ),
        listed=subject.nearest,
        near=len(near),
    )
