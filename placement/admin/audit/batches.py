"""Write corrections in transactions of limited size."""

from collections.abc import Callable, Sequence
import functools
from typing import TypeVar

import sqlalchemy as sa

from placement.admin.audit.model import Change
from placement.admin.progress import Progress
from placement.db import engine

# The findings that one transaction corrects. It writes at most twice as many rows, because a
# correction can also touch the parent of a provider.
SIZE = 500

Key = TypeVar('Key')
# Repeats the check of findings, corrects them, and returns the changed rows.
Work = Callable[[Sequence[Key], sa.Connection], list[Change]]


def write(code: str, keys: Sequence[Key], work: Work[Key], report: Progress) -> list[Change]:
    """Execute `work` for all keys, each batch in a transaction of its own.

    :param keys: identify the findings, as an earlier transaction read them
    """
    changes: list[Change] = []
    if not keys:
        return changes
    with report(f'Correcting {code}', len(keys)) as advance:
        for start in range(0, len(keys), SIZE):
            batch = keys[start : start + SIZE]
            changes += engine.write(functools.partial(work, batch))
            advance(len(batch))
    return changes
