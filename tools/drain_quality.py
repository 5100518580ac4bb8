"""Compare the plans of `placement-manage drain` with an exact search in small random worlds.

Run `python -m tools.drain_quality 0 1000`. It prints, for each style of world, how many drains are
possible, how many of these the command found, and how many impossible drains it proved.
"""

import argparse
from collections import Counter, defaultdict

from placement.admin.drain.report import FITS, IMPOSSIBLE, Planner
from placement.tests.unit.admin.drain import clouds
from placement.tests.unit.admin.drain.definition import Definition


def measure(seeds: range) -> dict[str, Counter[str]]:
    """Return the counts of each style of world."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in seeds:
        case = clouds.case(seed)
        if not case.affected:
            continue
        drain, _ = Planner(case.cloud, case.conditions).drain(case.affected, case.roots)
        possible = Definition(case).can_drain()
        count = counts[case.style]
        count['drains'] += 1
        count['possible'] += possible
        count['found'] += drain.verdict == FITS
        count['proved'] += drain.verdict == IMPOSSIBLE
        wrong = IMPOSSIBLE if possible else FITS
        count['wrong'] += drain.verdict == wrong
        if possible and drain.verdict != FITS:
            print(f'seed {seed} ({case.style}): {drain.placed} of {drain.consumers} placed')
    return counts


def main() -> None:
    """Print the counts of the seeds of the command line."""
    parser = argparse.ArgumentParser(description='Compare drains with an exact search.')
    parser.add_argument('first', type=int)
    parser.add_argument('end', type=int)
    arguments = parser.parse_args()
    counts = measure(range(arguments.first, arguments.end))
    counts['all'] = sum(counts.values(), Counter())
    for style, count in counts.items():
        share = count['found'] / max(count['possible'], 1)
        print(f'{style:8} {dict(count)} found: {share:.1%} of the possible drains')


if __name__ == '__main__':
    main()
