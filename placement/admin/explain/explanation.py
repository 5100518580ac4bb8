"""Runs the steps of an explanation on one snapshot of the database."""

from dataclasses import dataclass

import sqlalchemy as sa

from placement.admin import cloud, query_text
from placement.admin.console import Progress
from placement.admin.explain import conditions, evidence, search
from placement.admin.explain.evidence import Json, Lack
from placement.admin.explain.search import Relaxation, Trees
from placement.candidates import names as names_of_queries
from placement.candidates import request
from placement.candidates.selection import Budget
from placement.microversion import Version

# The number of nearest trees that are compared, so that equal ones share a line.
COMPARED = 1_000


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a query has no candidates.

    :ivar document: the JSON document. `relaxations` has the sets whose search reached the search
        limit, too
    :ivar hosts: the names of the trees with candidates, in a list for each kind of host
    :ivar lack: the host that lacks the smallest part of an amount, and nothing else
    :ivar by_condition: for each key, the roots in whose reach some provider satisfies the condition
        alone, and those before it
    :ivar nearest: the trees of the document, and more for comparison
    :ivar near: the number of trees in which as few conditions fail
    """

    document: Json
    hosts: list[list[str]]
    lack: Lack | None
    by_condition: list[tuple[str, int]]
    nearest: list[Json]
    near: int


def explain(
    conn: sa.Connection,
    text: str,
    version: Version,
    max_steps: int,
    listed: int,
    progress: Progress,
) -> Explanation:
    """Return the explanation of a query.

    :param conn: a connection on which all statements read the same snapshot of the database
    :param text: the query as the operator wrote it
    :param max_steps: the search limit; negative for no limit
    :param listed: the maximum number of nearest trees to list
    :raises failure.CannotProceedError: the API refuses the query, or a class or trait of the query
        does not exist
    """
    with query_text.refusing():
        named = query_text.parse(text, version)
        ids = names_of_queries.look_up(conn, named)
        query = request.with_ids(named, ids)
    providers = [
        conditions.with_presence(one, query.classes) for one in cloud.providers(conn, progress)
    ]
    anchors = cloud.anchors(providers, ids.sharing_id, bool(query.same_subtrees))
    names = cloud.names(conn)
    pairs = query_text.pairs(text)
    every = conditions.conditions_of(pairs, version, named, ids)
    searched = search.search_of(every, query, anchors, progress)
    with progress('Searching candidates') as advance:
        candidates = searched.trees((), Budget(max_steps), advance)
    relaxations: list[Relaxation] = []
    if nothing_fits := not (candidates.count or candidates.cut):
        relaxations = searched.relaxations(max_steps, progress)
    found = _trees(candidates)
    nearest, near = _nearest(searched, listed, names)
    by_id = {anchor.root.id: anchor for anchor in anchors}
    return Explanation(
        document={
            'query': text,
            'microversion': str(version),
            'candidates': found,
            **_nested(searched, max_steps),
            'conditions': [{'key': condition.key} for condition in every],
            'relaxations': list(map(_relaxation, relaxations)),
            'pairs_omitted': nothing_fits and searched.omits_pairs(relaxations),
            'funnel': [
                *evidence.of_groups(query, named, anchors),
                {'roots': evidence.of_roots(query, searched, found)},
            ],
            'nearest': nearest[:listed],
        },
        hosts=evidence.equal_hosts([by_id[id_] for id_ in candidates.roots], names),
        lack=evidence.smallest_lack(relaxations, by_id, names),
        by_condition=list(evidence.by_condition(searched)),
        nearest=nearest,
        near=near,
    )


def _nested(searched: search.Search, max_steps: int) -> Json:
    """Return the trees that have candidates in microversion 1.29, if the query has an older one."""
    if searched.nested:
        return {}
    return {'candidates_in_1.29': _trees(searched.trees((), Budget(max_steps), nested=True))}


def _nearest(searched: search.Search, listed: int, names: evidence.Names) -> tuple[list[Json], int]:
    """Return the nearest trees to compare, and the number of all of them."""
    near = evidence.nearest(searched, listed, names)
    compared = near[: max(listed, COMPARED)]
    trees = [evidence.near_tree(searched, failures, one, names) for failures, one in compared]
    return trees, len(near)


def _trees(trees: Trees) -> Json:
    result: Json = {'trees': trees.count, 'more': trees.more}
    return result | {'cut': True} if trees.cut else result


def _relaxation(relaxation: Relaxation) -> Json:
    keys = [condition.key for condition in relaxation.without]
    trees = {'cut': True} if relaxation.trees.cut else _trees(relaxation.trees)
    return {'without': keys, **trees}
