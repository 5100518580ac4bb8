"""Builds the JSON document and the text of an explanation."""

from collections.abc import Iterator, Sequence
import textwrap
from typing import Any

from placement.admin import tables
from placement.admin.explain import funnel
from placement.admin.explain.judge import MAX_TREES
from placement.admin.explain.model import (
    Explanation,
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

_COLLECTIVE_TRAITS = (
    'Required traits of the unsuffixed group are not checked: its providers may have them together.'
)
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
        'nearest': [_near_tree(tree) for tree in explanation.nearest],
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
    if not candidates.count and not candidates.cut:
        yield ''
        yield from _relaxation_lines(explanation)
    yield ''
    yield 'Providers that remain after each check:'
    yield _funnel_table(explanation)
    if _has_collective_traits(explanation):
        yield _COLLECTIVE_TRAITS
    yield ''
    yield 'Trees that remain after each check:'
    yield _roots_table(explanation)
    if not candidates.count and explanation.nearest:
        yield ''
        yield 'Trees in which the fewest conditions fail:'
        for tree in explanation.nearest:
            yield from _near_lines(tree)


def _summary(trees: Trees, where: str) -> list[str]:
    if trees.cut and not trees.count:
        return _paragraph(f'{_LIMIT_REACHED} {where}. Allocation candidates may exist.')
    if not trees.count:
        return [f'No provider tree has allocation candidates {where}.']
    count = _count(trees)
    have = 'provider tree has' if count == '1' else 'provider trees have'
    return [f'{count} {have} allocation candidates {where}.']


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, tables.WIDTH, break_on_hyphens=False)


def _has_collective_traits(explanation: Explanation) -> bool:
    """Whether the unsuffixed group has required traits."""
    return any(
        key.startswith('required:') and not key.startswith('required:!')
        for key in explanation.conditions
    )


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
        yield _relaxation_table(found)
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
    titles = [_TITLES[check] for check in funnel.CHECKS]
    rows = [
        [_label(of_group), *(of_group.providers[check] for check in funnel.CHECKS)]
        for of_group in explanation.funnel
    ]
    return tables.table(['Request', *titles], rows, numbers=titles)


def _label(of_group: GroupFunnel) -> str:
    amounts = ', '.join(f'{name}:{amount}' for name, amount in of_group.amounts.items())
    return f'group {of_group.suffix}: {amounts}'.rstrip(': ') if of_group.suffix else amounts


def _roots_table(explanation: Explanation) -> str:
    roots = explanation.roots
    titles = ['All', 'root_required', 'Every group served', 'Candidates']
    row = [roots.total, roots.root_required, roots.served, _count(roots.candidates).lower()]
    return tables.table(titles, [row], numbers=titles)


def _near_lines(tree: NearTree) -> list[str]:
    facts = '; '.join(fact.text for fact in tree.failures[:_MAX_FACTS])
    if len(tree.failures) > _MAX_FACTS:
        facts += f'; and {len(tree.failures) - _MAX_FACTS} more, which --format json lists'
    return _item(f'{tree.name}: {facts or "each condition is satisfied, but not all together"}')


def _item(line: str) -> list[str]:
    """Return the lines of an item of a list."""
    return textwrap.wrap(
        tables.printable(line),
        tables.WIDTH,
        initial_indent='  ',
        subsequent_indent='      ',
        break_on_hyphens=False,
    )
