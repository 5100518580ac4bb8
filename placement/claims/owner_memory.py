"""Insert the owners of a claim that this process has not seen in the database yet.

Placement never deletes projects, users and consumer types. So a process remembers which of them
exist, and does not query the database again. This memory can be wrong, for example if a database
was restored from a backup while the process ran. Therefore callers also detect missing owners.
"""

from collections.abc import Iterable
import threading
import weakref

import cachetools
import sqlalchemy as sa

from placement.claims import statements
from placement.claims.model import Claim

# The maximum number of owners that a process remembers. Their names have at most 255 characters.
CAPACITY = 20_000

# The kind and the name of an owner.
_Owner = tuple[int, str]
# A set of owners; the values have no meaning.
_Owners = cachetools.FIFOCache[_Owner, None]
# The owners that exist, for each database that this process uses.
_existing: weakref.WeakKeyDictionary[sa.Engine, _Owners] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def insert_missing(conn: sa.Connection, claim: Claim) -> None:
    """Insert the missing owners of a claim, with one statement for each unknown owner."""
    existing = _of_database(conn.engine)
    for kind, name in _owners(claim):
        if (kind, name) not in existing:
            insert = statements.INSERT_OWNER_UNLESS_STORED[kind][conn.dialect.name]
            conn.execute(insert, {'name': name})


def remember(engine: sa.Engine, claims: Iterable[Claim]) -> None:
    """Remember the owners of claims whose transaction was committed."""
    existing = _of_database(engine)
    for claim in claims:
        if claim.allocations:
            for owner in _owners(claim):
                if owner not in existing:
                    with _LOCK:
                        existing[owner] = None


def forget(engine: sa.Engine, claim: Claim) -> None:
    """Forget the owners of a claim, because one of them may not exist."""
    existing = _of_database(engine)
    for owner in _owners(claim):
        with _LOCK:
            existing.pop(owner, None)


def forget_all(engine: sa.Engine) -> None:
    """Forget all owners in a database."""
    _existing.pop(engine, None)


def _of_database(engine: sa.Engine) -> _Owners:
    existing = _existing.get(engine)
    if existing is None:
        existing = _existing.setdefault(engine, _Owners(CAPACITY))
    return existing


def _owners(claim: Claim) -> list[_Owner]:
    """Return the owners of a claim in the order in which all transactions insert them."""
    owners = [(statements.PROJECT, claim.project_id), (statements.USER, claim.user_id)]
    if claim.consumer_type is not None:
        owners.append((statements.TYPE, claim.consumer_type))
    return owners
