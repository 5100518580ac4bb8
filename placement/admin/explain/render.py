"""Builds the text of an explanation from its JSON document."""

from collections.abc import Iterator, Sequence
import itertools
import shlex

from placement.admin import console
from placement.admin.explain.explanation import CHECKS, Explanation
from placement.admin.explain.search import MAX_CONDITIONS_FOR_PAIRS, MAX_TREES, Json

# The text lists at most this number of kinds of hosts with candidates, of facts of a tree, and of
# sets of conditions whose search reached the search limit.
_LONGEST = 10
_LIMIT = 'The search reached the limit [placement] max_candidate_search_steps'
# The titles of `CHECKS`.
_TITLES = ('Inventory', 'Units', 'Capacity', 'Free', 'in_tree', 'Aggregates', 'Traits')
_WOULD_FIT = 'Hosts that would fit'
_INDENT = '  '
_UNITS = {'MEMORY_MB': 'MB of memory', 'DISK_GB': 'GB of disk'}
# The beginning of a key -> what the client lists of a provider.
_LISTED = {'resources': 'inventory', 'required': 'trait', 'member_of': 'aggregate'}


def text(explanation: Explanation, command: str | None) -> str:
    """Return the explanation for a terminal: the verdict, the evidence, and what to do next.

    :param command: the result of `next_command`
    """
    document = explanation.document
    # The sets with the most trees are first.
    found = sorted(
        (one for one in document['relaxations'] if 'cut' not in one), key=lambda one: -one['trees']
    )
    cut = [' and '.join(one['without']) for one in document['relaxations'] if 'cut' in one]
    lines = [console.paragraph(' '.join(_verdict(explanation, found)))]
    if cut:
        lines += ['', console.paragraph(f'{_LIMIT} without these conditions, so hosts may fit:')]
        lines += [console.paragraph(one, _INDENT) for one in _shortened(cut)]
    if found:
        rows = [(' and '.join(one['without']), _count(one)) for one in found]
        lines += ['', console.table(['Without', _WOULD_FIT], rows, numbers=[_WOULD_FIT])]
    if not document['candidates']['trees'] and explanation.nearest:
        lines += ['', 'The hosts in which the fewest conditions fail:', *_nearest(explanation)]
    *funnel, of_roots = document['funnel']
    rows = [
        ('all hosts', f'{of_roots["roots"]["all"]:,}'),
        *((key, f'{count:,}') for key, count in explanation.by_condition),
        ('each group has a provider', f'{of_roots["roots"]["every_group_served"]:,}'),
        ('all conditions together', _count(document['candidates'])),
    ]
    lines += ['\nHosts that remain after each condition:']
    lines += [console.table(['Condition', 'Hosts'], rows, numbers=['Hosts'])]
    lines += ['\nProviders that remain after each check:', _funnel_table(funnel)]
    if command:
        lines.append(f'\nNext: {console.printable(command)}')
    return '\n'.join(lines)


def next_command(explanation: Explanation, assumed: Sequence[str] = ()) -> str | None:
    """Return the command to use next; None if there is none.

    :param assumed: the values of --assume
    """
    options = [word for change in assumed for word in ('--assume', change)]
    document = explanation.document
    if document['candidates']['trees']:
        version = ('--microversion', document['microversion'])
        return _command('headroom', document['query'], *version, *options)
    if explanation.lack:
        return _command('drain', explanation.lack.host, *options)
    for tree in document['nearest'][:1]:
        for failure in tree['failures'][:1]:
            for prefix, listed in _LISTED.items():
                if failure['key'].removeprefix('root_').startswith(prefix):
                    return f'openstack resource provider {listed} list {tree["uuid"]}'
    return None


def _command(*words: str) -> str:
    return shlex.join(('placement-manage', *words))


# The verdict ------------------------------------------------------------------


def _verdict(explanation: Explanation, found: Sequence[Json]) -> Iterator[str]:
    """Yield the sentences of the verdict.

    :param found: the relaxations, the best first
    """
    document = explanation.document
    yield _fits(document['candidates'], explanation.hosts)
    if 'candidates_in_1.29' in document:
        yield f'From microversion 1.29 on: {_fits(document["candidates_in_1.29"], [])}'
    if document['candidates']['trees'] or 'cut' in document['candidates']:
        return
    if found:
        without = ' and '.join(key.removeprefix('required:') for key in found[0]['without'])
        lack = ''
        if explanation.lack:
            unit = _UNITS.get(explanation.lack.class_name, explanation.lack.class_name)
            lack = f'; {explanation.lack.host} lacks {explanation.lack.amount:,} {unit}'
        yield f'{_hosts(found[0])} would fit without {without}{lack}.'
    elif document['pairs_omitted']:
        yield (
            'No single condition is the reason. Pairs of conditions are examined for at most '
            f'{MAX_CONDITIONS_FOR_PAIRS} conditions; this query has {len(document["conditions"])}.'
        )
    elif not document['relaxations']:
        yield 'No single condition is the reason, and no pair of conditions.'


def _fits(trees: Json, hosts: Sequence[Sequence[str]]) -> str:
    if not trees['trees']:
        return f'{_LIMIT}, so hosts may fit.' if 'cut' in trees else 'Nothing fits.'
    verb = 'fits' if trees['trees'] == 1 else 'fit'
    named = f': {_kinds(hosts, trees["more"])}' if hosts else '.'
    return f'{_hosts(trees)} {verb}{named}'


def _hosts(trees: Json) -> str:
    return f'{_count(trees)} {"host" if trees["trees"] == 1 else "hosts"}'


def _count(trees: Json) -> str:
    count = trees['trees']
    if count >= MAX_TREES and trees['more']:
        return f'More than {MAX_TREES:,}'
    return f'At least {count:,}' if trees['more'] else f'{count:,}'


def _kinds(hosts: Sequence[Sequence[str]], more: bool) -> str:
    """Return the first name of each kind of host, with the number of the others."""
    names = [_first(of_kind) for of_kind in sorted(hosts, key=len, reverse=True)]
    if more or len(names) > _LONGEST:
        return ', '.join([*names[: _LONGEST - 1], '...'])
    return f'{", ".join(names)}.'


def _first(names: Sequence[str]) -> str:
    return names[0] + (f' ({len(names) - 1:,} more)' if len(names) > 1 else '')


# The evidence -----------------------------------------------------------------


def _nearest(explanation: Explanation) -> Iterator[str]:
    """Yield a line for the trees in which the same conditions fail for the same reasons."""
    for facts, names in explanation.nearest[: len(explanation.document['nearest'])]:
        listed = '; '.join(_shortened(facts))
        listed = listed or 'each condition is satisfied, but not all together'
        yield console.paragraph(f'{_first(names)}: {listed}', _INDENT)


def _shortened(texts: Sequence[str]) -> list[str]:
    """Return the first texts, and the number of the others."""
    more = len(texts) - _LONGEST
    others = [f'and {more} more, which --format json lists'] if more > 0 else []
    return [*texts[:_LONGEST], *others]


def _funnel_table(funnel: Sequence[Json]) -> str:
    """Return the table without the columns in which no provider is lost."""
    rows = [[_label(one), *(f'{one["providers"][check]:,}' for check in CHECKS)] for one in funnel]
    columns = list(zip(('Request', *_TITLES), *rows, strict=True))
    kept = columns[:2]
    kept += [one for before, one in itertools.pairwise(columns[1:]) if one[1:] != before[1:]]
    titles, *cells = zip(*kept, strict=True)
    return console.table(titles, cells, numbers=titles[1:])


def _label(of_group: Json) -> str:
    group = of_group['group']
    amounts = ', '.join(f'{name}:{amount}' for name, amount in of_group['resources'].items())
    return f'group {group}: {amounts}'.rstrip(': ') if group else amounts
