"""Runs the steps of an explanation on one snapshot of the database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.admin import query_text
from placement.admin.explain import (
    conditions,
    funnel,
    judge,
    most_free,
    nearest,
    patterns,
    relaxations,
)
from placement.admin.explain.checks import Checks, Failures
from placement.admin.explain.conditions import Condition
from placement.admin.explain.model import Explanation, Fact, Most, MostFree, NearTree, Relaxation
from placement.admin.explain.patterns import AnchorPattern, Largest
from placement.admin.progress import Progress
from placement.candidates import model, pages, request
from placement.candidates import names as names_of_queries
from placement.candidates.selection import Budget
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.microversion import Version

# The nearest trees are read in batches of this size, at least one batch to find equal trees.
NEAR_TREES_PER_BATCH = 1_000
# If more names are needed, it is faster to read the names of all providers.
_MAX_NAMES = 5_000


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
class _Cloud:
    """The query, and the patterns of all anchors."""

    query: model.Query[int]
    names: model.Query[str]
    sharing_id: int | None
    conditions: tuple[Condition, ...]
    patterns: patterns.Patterns
    checks: Checks
    judge: judge.Judge


def explain(conn: sa.Connection, subject: Subject, progress: Progress) -> Explanation:
    """Return the explanation of a query.

    :param conn: a connection on which all statements read the same snapshot of the database
    :raises failure.CannotProceedError: the API refuses the query, or a class or trait of the query
        does not exist
    """
    cloud = _read(conn, subject, progress)
    nested, max_steps = cloud.query.nested, subject.max_steps
    with progress('Searching candidates') as advance:
        candidates = cloud.judge.trees((), nested, Budget(max_steps), advance)
    found = relaxations.Found(())
    if not candidates.count and not candidates.cut:
        found = relaxations.find(cloud.judge, nested, max_steps, progress)
    near = nearest.nearest_roots(cloud.judge.failures, subject.nearest)
    keys = tuple(condition.key for condition in cloud.conditions)
    names = _names(conn, candidates.root_ids)
    return Explanation(
        query=subject.text,
        microversion=str(subject.version),
        candidates=candidates,
        hosts=tuple(sorted(names[id_] for id_ in candidates.root_ids)),
        nested=None if nested else cloud.judge.trees((), True, Budget(max_steps)),
        conditions=keys,
        relaxations=_relaxations(conn, cloud, found),
        pairs_omitted=found.pairs_omitted,
        funnel=funnel.of_groups(cloud.query, cloud.names, cloud.patterns.providers.values()),
        roots=funnel.of_roots(cloud.query, cloud.judge.failures, candidates, keys),
        nearest=_nearest(conn, cloud, near, subject.nearest),
        listed=subject.nearest,
        near=len(near),
    )


def _read(conn: sa.Connection, subject: Subject, progress: Progress) -> _Cloud:
    names = query_text.parse(subject.text, subject.version)
    pairs = query_text.pairs(subject.text)
    all_conditions = conditions.conditions_of(pairs, subject.version, names)
    try:
        ids = names_of_queries.look_up(conn, names)
        query = request.with_ids(names, ids)
    except exception.BadInput as error:
        raise query_text.refusal(error) from error
    seen = patterns.Patterns(query)
    with progress('Reading provider trees') as advance:
        for page in pages.all_pages(conn, query, ids.sharing_id):
            seen.add(page)
            advance(len(page))
    checks = Checks(all_conditions, ids)
    with progress('Checking conditions', len(seen.anchors)) as advance:
        by_failures = judge.by_failures(checks, seen.anchors.values(), advance)
    return _Cloud(
        query=query,
        names=names,
        sharing_id=ids.sharing_id,
        conditions=all_conditions,
        patterns=seen,
        checks=checks,
        judge=judge.Judge(all_conditions, ids, by_failures),
    )


# Relaxations ------------------------------------------------------------------


def _relaxations(
    conn: sa.Connection, cloud: _Cloud, found: relaxations.Found
) -> tuple[Relaxation, ...]:
    by_relaxation = [
        {} if relaxed.trees.cut else most_free.of_relaxation(relaxed, cloud.judge, cloud.patterns)
        for relaxed in found.relaxations
    ]
    ids = {
        id_
        for by_key in by_relaxation
        for most in by_key.values()
        for id_ in (*most.free.provider_ids, *most.max_unit.provider_ids)
    }
    names = _names(conn, ids)
    return tuple(
        Relaxation(
            without=tuple(condition.key for condition in relaxed.without),
            trees=relaxed.trees,
            most_free={
                key: MostFree(_most(most.free, names), _most(most.max_unit, names))
                for key, most in by_key.items()
            },
        )
        for relaxed, by_key in zip(found.relaxations, by_relaxation, strict=True)
    )


def _most(largest: Largest, names: Mapping[int, str]) -> Most:
    return Most(largest.value, min(names[id_] for id_ in largest.provider_ids))


# Nearest trees ----------------------------------------------------------------


def _nearest(
    conn: sa.Connection, cloud: _Cloud, roots: list[int], count: int
) -> tuple[NearTree, ...]:
    if not roots:
        return ()
    failures = _failures_of_roots(cloud.judge.failures, roots)
    names = _names(conn, roots)
    roots.sort(key=lambda id_: (failures[id_].alone.bit_count(), names[id_], id_))
    reader = pages.Reader(conn, cloud.query, cloud.sharing_id)
    found: list[NearTree] = []
    for first in range(0, min(count, len(roots)), NEAR_TREES_PER_BATCH):
        batch = roots[first : first + NEAR_TREES_PER_BATCH]
        anchors = {anchor.root.id: anchor for anchor in reader.read_trees(batch)}
        names = _names(conn, nearest.provider_ids(anchors.values()))
        found += (_near_tree(cloud, anchors[id_], names) for id_ in batch)
    return tuple(found)


def _failures_of_roots(
    by_failures: Mapping[Failures, Sequence[AnchorPattern]], roots: Sequence[int]
) -> dict[int, Failures]:
    wanted = set(roots)
    return {
        id_: failures
        for failures, of_failures in by_failures.items()
        for pattern in of_failures
        for id_ in pattern.root_ids
        if id_ in wanted
    }


def _near_tree(cloud: _Cloud, anchor: model.Anchor, names: Mapping[int, str]) -> NearTree:
    class_ids = cloud.judge.ids.classes
    return NearTree(
        name=names[anchor.root.id],
        uuid=anchor.root.uuid,
        failures=tuple(
            Fact(condition.key, _text(condition, nearest.fact(condition, class_ids, anchor, names)))
            for number, condition in enumerate(cloud.conditions)
            if not cloud.checks.satisfying(number, anchor)
        ),
    )


def _text(condition: Condition, fact: str) -> str:
    return f'{fact} (group {condition.suffix})' if condition.suffix else fact


def _names(conn: sa.Connection, provider_ids: Collection[int]) -> dict[int, str]:
    """Return provider id -> name, for at least these providers."""
    providers = models.resource_providers
    statement: sa.Select[Any] = sa.select(providers.c.id, providers.c.name)
    if len(provider_ids) <= _MAX_NAMES:
        statement = statement.where(providers.c.id.in_(expressions.id_list(provider_ids)))
    return {id_: name or '' for id_, name in conn.execute(statement)}
