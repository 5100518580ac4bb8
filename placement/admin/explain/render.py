"""Builds the JSON document and the text of an explanation."""

from collections.abc import Iterator, Sequence
import itertools
import textwrap
from typing import Any

from placement.admin import tables
from placement.admin.explain import funnel
from placement.admin.explain.judge import MAX_TREES
from placement.admin.explain.model import (
    Explanation,
    Fact,
    GroupFunnel,
    Most,
    NearTree,
    Relaxation,
    Trees,
)
from placement.admin.explain.relaxations import MAX_CONDITIONS_FOR_PAIRS

Json = dict[str, Any]

# The text lists at most this number of sets of conditions whose search reached the search limit.
_MAX_CUT = 10
# The text lists at most this number of facts of a tree.
_MAX_FACTS = 10
# The text names at most this number of trees with candidates, and of equal trees without.
_MAX_HOSTS, _MAX_EQUAL = 10, 3

_LIMIT_REACHED = 'The search reached the limit [placement] max_candidate_search_steps'

# The titles of the checks of `funnel.CHECKS`.
_TITLES = {
    'inventory': 'Inventory',
    'units': 'Units',
    'capacity': 'Capacity',
    'free_capacity': 'Free',
    'in_tree': 'in_tree',
    'aggregates': 'Aggregates',
    'traits': 'Traits',
}


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
        'funnel': [*map(_group_funnel, explanation.funnel), _root_funnel(explanation)],
        'nearest': [_near_tree(tree) for tree in explanation.nearest[: explanation.listed]],
    }


def _trees(trees: Trees) -> Json:
    result: Json = {'trees': trees.count, 'more': trees.more}
    return result | {'cut': True} if trees.cut else result


def _relaxation(relaxation: Relaxation) -> Json:
    result: Json = {'without': list(relaxation.without)}
    if relaxation.trees.cut:
        return result | {'cut': True}
    result |= _trees(relaxation.trees)
    if relaxation.most_free:
        result['most_free'] = {
            key: {
                'amount': most.free.amount,
                'provider': most.free.provider,
                'most_unit': most.max_unit.amount,
                'most_unit_provider': most.max_unit.provider,
            }
            for key, most in relaxation.most_free.items()
        }
    return result


def _group_funnel(of_group: GroupFunnel) -> Json:
    return {
        'group': of_group.suffix,
        'resources': dict(of_group.amounts),
        'providers': dict(of_group.providers),
    }


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


def _near_tree(tree: NearTree) -> Json:
    return {
        'name': tree.name,
        'uuid': tree.uuid,
        'failures': [{'key': fact.key, 'fact': fact.text} for fact in tree.failures],
    }


# Text -------------------------------------------------------------------------


def text(explanation: Explanation) -> str:
    """Return the explanation for a terminal."""
    return '\n'.join(_lines(explanation))


def _lines(explanation: Explanation) -> Iterator[str]:
    candidates = explanation.candidates
    yield from _summary(candidates, f'in microversion {explanation.microversion}')
    if explanation.nested:
        yield from _summary(explanation.nested, 'from microversion 1.29 on')
    if candidates.count:
        hosts = explanation.hosts
        if candidates.more:
            hosts = (*hosts[: _MAX_HOSTS - 1], '...')
        yield from _item(_first(hosts, _MAX_HOSTS))
    elif not candidates.cut:
        yield ''
        yield from _relaxation_lines(explanation)
    yield ''
    yield 'Providers that remain after each check:'
    yield _funnel_table(explanation)
    yield ''
    yield 'Trees that remain after each condition:'
    yield _roots_table(explanation)
    if not candidates.count and explanation.nearest:
        yield ''
        yield 'Trees in which the fewest conditions fail:'
        yield from _nearest_lines(explanation)


def _first(names: Sequence[str], number: int) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - number
    return ', '.join(names[:number]) + (f', and {more} more' if more > 0 else '')


def _summary(trees: Trees, where: str) -> list[str]:
    if trees.cut and not trees.count:
        return _paragraph(f'{_LIMIT_REACHED} {where}. Allocation candidates may exist.')
    if not trees.count:
        return [f'No provider tree has allocation candidates {where}.']
    count = _count(trees)
    have = 'provider tree has' if count == '1' else 'provider trees have'
    return [f'{count} {have} allocation candidates {where}.']


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, tables.width(), break_on_hyphens=False)


def _count(trees: Trees) -> str:
    if trees.count >= MAX_TREES and trees.more:
        return f'More than {MAX_TREES}'
    return f'At least {trees.count}' if trees.more else str(trees.count)


def _relaxation_lines(explanation: Explanation) -> Iterator[str]:
    found = [relaxation for relaxation in explanation.relaxations if not relaxation.trees.cut]
    cut = [relaxation for relaxation in explanation.relaxations if relaxation.trees.cut]
    if found:
        several = len(found[0].without) > 1
        yield (
            'Without one of these pairs of conditions, there are candidates:'
            if several
            else 'Without one of these conditions, there are candidates:'
        )
        yield _relaxation_table(sorted(found, key=lambda one: -one.trees.count))
    elif explanation.pairs_omitted:
        yield from _paragraph(
            f'There is no {"other " if cut else ""}single condition without which there are '
            'candidates. Pairs of conditions are examined for at most '
            f'{MAX_CONDITIONS_FOR_PAIRS} conditions; this query has '
            f'{len(explanation.conditions)}.'
        )
    elif not cut:
        yield (
            'There is no condition, and no pair of conditions, without which there are candidates.'
        )
    if cut:
        yield from _cut_lines(cut)


def _cut_lines(cut: Sequence[Relaxation]) -> Iterator[str]:
    yield from _paragraph(
        f'{_LIMIT_REACHED} without these conditions. Allocation candidates may exist:'
    )
    for relaxation in cut[:_MAX_CUT]:
        yield from _item(' and '.join(relaxation.without))
    if len(cut) > _MAX_CUT:
        yield f'  and {len(cut) - _MAX_CUT} more, which --format json lists'


def _relaxation_table(found: Sequence[Relaxation]) -> str:
    titles = ['Without', 'Trees', 'Most free', 'Largest max_unit']
    if not any(relaxation.most_free for relaxation in found):
        titles = titles[:2]
    rows = [_relaxation_row(relaxation)[: len(titles)] for relaxation in found]
    return tables.table(titles, rows, numbers=['Trees'])


def _relaxation_row(relaxation: Relaxation) -> list[str]:
    most = relaxation.most_free.items()
    several = len(most) > 1
    return [
        _without(relaxation),
        _count(relaxation.trees).lower(),
        ', '.join(_amount(key if several else '', each.free) for key, each in most),
        ', '.join(_amount(key if several else '', each.max_unit) for key, each in most),
    ]


def _without(relaxation: Relaxation) -> str:
    return tables.printable(' and '.join(relaxation.without))


def _amount(key: str, most: Most) -> str:
    """Return an amount with its provider, and with the resource class at the end of a key."""
    return f'{key.rpartition(":")[2]} {most.amount} on {most.provider}'.lstrip()


def _funnel_table(explanation: Explanation) -> str:
    """Return the table without the columns in which no provider is lost."""
    rows = [
        [_label(of_group), *(of_group.providers[check] for check in funnel.CHECKS)]
        for of_group in explanation.funnel
    ]
    kept = [
        number
        for number in range(len(funnel.CHECKS) + 1)
        if number < 2 or any(row[number] != row[number - 1] for row in rows)
    ]
    titles = ['Request', *(_TITLES[check] for check in funnel.CHECKS)]
    titles = [titles[number] for number in kept]
    return tables.table(titles, [[row[n] for n in kept] for row in rows], numbers=titles[1:])


def _label(of_group: GroupFunnel) -> str:
    amounts = ', '.join(f'{name}:{amount}' for name, amount in of_group.amounts.items())
    return f'group {of_group.suffix}: {amounts}'.rstrip(': ') if of_group.suffix else amounts


def _roots_table(explanation: Explanation) -> str:
    roots = explanation.roots
    rows = [
        ('all trees', str(roots.total)),
        *((tables.printable(key), str(count)) for key, count in roots.by_condition),
        ('each group has a provider', str(roots.served)),
        ('candidates', _count(roots.candidates).lower()),
    ]
    return tables.table(['Condition', 'Trees'], rows, numbers=['Trees'])


def _nearest_lines(explanation: Explanation) -> Iterator[str]:
    """Yield a line for the trees in which the same conditions fail for the same reasons."""
    equal: dict[tuple[Fact, ...], list[str]] = {}
    for tree in explanation.nearest:
        equal.setdefault(tree.failures, []).append(tree.name)
    for failures, names in itertools.islice(equal.items(), explanation.listed):
        facts = '; '.join(fact.text for fact in failures[:_MAX_FACTS])
        if len(failures) > _MAX_FACTS:
            facts += f'; and {len(failures) - _MAX_FACTS} more, which --format json lists'
        facts = facts or 'each condition is satisfied, but not all together'
        yield from _item(f'{_first(names, _MAX_EQUAL)}: {facts}')
    if explanation.near > len(explanation.nearest):
        yield f'These are {len(explanation.nearest)} of {explanation.near} such trees.'


def _item(line: str) -> list[str]:
    """Return the lines of an item of a list."""
    return textwrap.wrap(
        tables.printable(line),
        tables.width(),
        initial_indent='  ',
        subsequent_indent='      ',
        break_on_hyphens=False,
    )
