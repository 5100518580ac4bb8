"""Builds the JSON document and the text of an explanation."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
import itertools
import shlex
from typing import Any

from placement.admin import tables
from placement.admin.explain.evidence import CHECKS, Fact, GroupFunnel, Lack
from placement.admin.explain.explanation import Explanation
from placement.admin.explain.search import (
    MAX_CONDITIONS_FOR_PAIRS,
    MAX_TREES,
    Relaxation,
    Trees,
)

Json = dict[str, Any]

# The text lists at most this number of sets of conditions whose search reached the search limit.
_MAX_CUT = 10
# The text lists at most this number of facts of a tree.
_MAX_FACTS = 10
# The text names at most this number of kinds of hosts with candidates.
_MAX_KINDS = 10
_LIMIT = 'The search reached the limit [placement] max_candidate_search_steps'
# The titles of `CHECKS`.
_TITLES = ('Inventory', 'Units', 'Capacity', 'Free', 'in_tree', 'Aggregates', 'Traits')
_WOULD_FIT = 'Hosts that would fit'
_INDENT = '  '
_UNITS = {'MEMORY_MB': 'MB of memory', 'DISK_GB': 'GB of disk'}
# The beginning of a key -> what the client lists of a provider.
_LISTED = {'resources': 'inventory', 'required': 'trait', 'member_of': 'aggregate'}


# JSON -------------------------------------------------------------------------


def document(explanation: Explanation) -> Json:
    """Return the JSON document of an explanation."""
    result: Json = {
        'query': explanation.query,
        'microversion': explanation.microversion,
        'candidates': _trees(explanation.candidates),
    }
    if explanation.nested:
        result['candidates_in_1.29'] = _trees(explanation.nested)
    return result | {
        'conditions': [{'key': key} for key in explanation.conditions],
        'relaxations': [_relaxation(relaxation) for relaxation in explanation.relaxations],
        'pairs_omitted': explanation.pairs_omitted,
        'funnel': [*map(asdict, explanation.funnel), _root_funnel(explanation)],
        'nearest': list(map(asdict, explanation.nearest[: explanation.listed])),
    }


def _trees(trees: Trees) -> Json:
    result: Json = {'trees': trees.count, 'more': trees.more}
    return result | {'cut': True} if trees.cut else result


def _relaxation(relaxation: Relaxation) -> Json:
    result: Json = {'without': list(relaxation.keys)}
    return result | ({'cut': True} if relaxation.trees.cut else _trees(relaxation.trees))


def _root_funnel(explanation: Explanation) -> Json:
    roots = explanation.roots
    return {
        'roots': {
            'all': roots.total,
            'root_required': roots.root_required,
            'every_group_served': roots.served,
            'candidates': _trees(roots.candidates),
        }
    }


# Text -------------------------------------------------------------------------


def text(explanation: Explanation, command: str | None) -> str:
    """Return the explanation for a terminal: the verdict, the evidence, and what to do next.

    :param command: the result of `next_command`
    """
    return '\n'.join(_lines(explanation, command))


def next_command(explanation: Explanation, assumed: Sequence[str] = ()) -> str | None:
    """Return the command to use next; None if there is none.

    :param assumed: the values of --assume
    """
    options = [word for change in assumed for word in ('--assume', change)]
    if explanation.candidates.count:
        version = ('--microversion', explanation.microversion)
        return _command('headroom', explanation.query, *version, *options)
    if explanation.lack:
        return _command('drain', explanation.lack.host, *options)
    for tree in explanation.nearest[:1]:
        for fact in tree.failures[:1]:
            for prefix, listed in _LISTED.items():
                if fact.key.removeprefix('root_').startswith(prefix):
                    return f'openstack resource provider {listed} list {tree.uuid}'
    return None


def _command(*words: str) -> str:
    return shlex.join(('placement-manage', *words))


def _lines(explanation: Explanation, command: str | None) -> Iterator[str]:
    found = [one for one in explanation.relaxations if not one.trees.cut]
    cut = [one for one in explanation.relaxations if one.trees.cut]
    yield tables.paragraph(' '.join(_verdict(explanation, found)))
    if cut:
        yield ''
        yield from _cut_lines(cut)
    if found:
        yield ''
        rows = [(' and '.join(one.keys), _count(one.trees)) for one in _best_first(found)]
        yield tables.table(['Without', _WOULD_FIT], rows, numbers=[_WOULD_FIT])
    if not explanation.candidates.count and explanation.nearest:
        yield ''
        yield 'The hosts in which the fewest conditions fail:'
        yield from _nearest_lines(explanation)
    yield ''
    yield 'Hosts that remain after each condition:'
    yield _roots_table(explanation)
    yield ''
    yield 'Providers that remain after each check:'
    yield _funnel_table(explanation)
    if command:
        yield ''
        yield f'Next: {tables.printable(command)}'


# The verdict ------------------------------------------------------------------


def _verdict(explanation: Explanation, found: Sequence[Relaxation]) -> Iterator[str]:
    """Yield the sentences of the verdict.

    :param found: the relaxations
    """
    candidates = explanation.candidates
    yield _fits(candidates, explanation.hosts)
    if explanation.nested:
        yield f'From microversion 1.29 on: {_fits(explanation.nested, [])}'
    if candidates.count or candidates.cut:
        return
    if found:
        best = _best_first(found)[0]
        without = ' and '.join(key.removeprefix('required:') for key in best.keys)
        sentence = f'{_hosts(best.trees)} would fit without {without}'
        if explanation.lack:
            sentence += f'; {_lack(explanation.lack)}'
        yield f'{sentence}.'
    elif explanation.pairs_omitted:
        yield (
            'No single condition is the reason. Pairs of conditions are examined for at most '
            f'{MAX_CONDITIONS_FOR_PAIRS} conditions; this query has {len(explanation.conditions)}.'
        )
    elif not explanation.relaxations:
        yield 'No single condition is the reason, and no pair of conditions.'


def _fits(trees: Trees, hosts: Sequence[Sequence[str]]) -> str:
    if trees.cut and not trees.count:
        return f'{_LIMIT}, so hosts may fit.'
    if not trees.count:
        return 'Nothing fits.'
    verb = 'fits' if trees.count == 1 else 'fit'
    named = f': {_kinds(hosts, trees.more)}' if hosts else '.'
    return f'{_hosts(trees)} {verb}{named}'


def _hosts(trees: Trees) -> str:
    return f'{_count(trees)} {"host" if trees.count == 1 else "hosts"}'


def _count(trees: Trees) -> str:
    if trees.count >= MAX_TREES and trees.more:
        return f'More than {MAX_TREES:,}'
    return f'At least {trees.count:,}' if trees.more else f'{trees.count:,}'


def _kinds(hosts: Sequence[Sequence[str]], more: bool) -> str:
    """Return the first name of each kind of host, with the number of the others."""
    names = [_first(of_kind) for of_kind in sorted(hosts, key=len, reverse=True)]
    if more or len(names) > _MAX_KINDS:
        return ', '.join([*names[: _MAX_KINDS - 1], '...'])
    return f'{", ".join(names)}.'


def _first(names: Sequence[str]) -> str:
    return names[0] + (f' ({len(names) - 1:,} more)' if len(names) > 1 else '')


def _lack(lack: Lack) -> str:
    unit = _UNITS.get(lack.class_name, lack.class_name)
    return f'{lack.host} lacks {lack.amount:,} {unit}'


def _best_first(found: Sequence[Relaxation]) -> list[Relaxation]:
    return sorted(found, key=lambda one: -one.trees.count)


# The evidence -----------------------------------------------------------------


def _cut_lines(cut: Sequence[Relaxation]) -> Iterator[str]:
    yield tables.paragraph(f'{_LIMIT} without these conditions, so hosts may fit:')
    for relaxation in cut[:_MAX_CUT]:
        yield tables.paragraph(' and '.join(relaxation.keys), _INDENT)
    if len(cut) > _MAX_CUT:
        yield f'  and {len(cut) - _MAX_CUT} more, which --format json lists'


def _nearest_lines(explanation: Explanation) -> Iterator[str]:
    """Yield a line for the trees in which the same conditions fail for the same reasons."""
    equal: dict[tuple[Fact, ...], list[str]] = {}
    for tree in explanation.nearest:
        equal.setdefault(tree.failures, []).append(tree.name)
    for failures, names in itertools.islice(equal.items(), explanation.listed):
        facts = '; '.join(fact.fact for fact in failures[:_MAX_FACTS])
        if len(failures) > _MAX_FACTS:
            facts += f'; and {len(failures) - _MAX_FACTS} more, which --format json lists'
        facts = facts or 'each condition is satisfied, but not all together'
        yield tables.paragraph(f'{_first(names)}: {facts}', _INDENT)
    if explanation.near > len(explanation.nearest):
        yield f'These are {len(explanation.nearest):,} of {explanation.near:,} such hosts.'


def _roots_table(explanation: Explanation) -> str:
    roots = explanation.roots
    rows = [
        ('all hosts', f'{roots.total:,}'),
        *((key, f'{count:,}') for key, count in roots.by_condition),
        ('each group has a provider', f'{roots.served:,}'),
        ('all conditions together', _count(roots.candidates)),
    ]
    return tables.table(['Condition', 'Hosts'], rows, numbers=['Hosts'])


def _funnel_table(explanation: Explanation) -> str:
    """Return the table without the columns in which no provider is lost."""
    rows = [
        [_label(of_group), *(f'{of_group.providers[check]:,}' for check in CHECKS)]
        for of_group in explanation.funnel
    ]
    kept = [
        number
        for number in range(len(CHECKS) + 1)
        if number < 2 or any(row[number] != row[number - 1] for row in rows)
    ]
    titles = [('Request', *_TITLES)[number] for number in kept]
    return tables.table(titles, [[row[n] for n in kept] for row in rows], numbers=titles[1:])


def _label(of_group: GroupFunnel) -> str:
    amounts = ', '.join(f'{name}:{amount}' for name, amount in of_group.resources.items())
    return f'group {of_group.group}: {amounts}'.rstrip(': ') if of_group.group else amounts
