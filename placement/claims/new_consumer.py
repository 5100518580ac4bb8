"""Write the claim of a new consumer that allocates from one provider.

Most claims of a cloud start an instance, and are of this kind. `write` needs fewer round trips than
the functions in `lock_and_read` and `settle`, which write every kind of claim:

* It does not read whether the consumer exists. The INSERT of the consumer detects this.
* The same INSERT looks up the ids of the project, user and consumer type.
* It does not lock the provider before it increments the generation. The UPDATE is the lock. With
  only one provider, the transaction does not need to lock providers in the order of their UUIDs.

The inventories and their usage are read after the provider is locked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.claims import judge, lock_and_read, owner_memory, settle, statements
from placement.claims.model import Claim, Demand
from placement.objects import generation, inventory_rows


def applies(claims: Sequence[Claim]) -> bool:
    """Return whether `write` can write the claims of a request."""
    if len(claims) != 1:
        return False
    (claim,) = claims
    return claim.requires_new_consumer and len(claim.allocations) == 1


def write(conn: sa.Connection, claim: Claim) -> bool:
    """Write a claim for which `applies` returns true, unless the database has unexpected rows.

    :returns: False if the consumer exists, if it has allocations without a consumer row, or if one
        of its owners does not exist. The caller must then lock and read the consumer
    :raises exception.UnknownResourceProviders:
    :raises exception.UnknownResourceClasses: lists all requested classes that do not exist
    :raises exception.InvalidAllocation: an inventory does not allow a requested amount
    """
    owner_memory.insert_missing(conn, claim)
    consumer = _parameters(claim)
    if not _insert_consumer(conn, consumer):
        return False
    ((provider_uuid, amounts),) = claim.allocations.items()
    if not generation.lock_and_increment_provider(conn, provider_uuid):
        raise exception.UnknownResourceProviders({provider_uuid})
    requested = {'uuid': provider_uuid, 'names': list(amounts), **consumer}
    rows = conn.execute(statements.INVENTORIES_FOR_NEW_CONSUMER, requested).all()
    if rows and rows[0][-1]:
        conn.rollback()
        owner_memory.forget(conn.engine, claim)
        return False
    inventories = inventory_rows.by_key(rows)
    lock_and_read.check_classes(conn, amounts.keys() - {name for _, name in inventories})
    # Without rows, the id of the provider is unknown, and `check_amounts` rejects the first amount.
    provider_id = rows[0][0] if rows else 0
    demands = [
        Demand(claim.consumer_uuid, provider_id, provider_uuid, name, amount)
        for name, amount in amounts.items()
    ]
    judge.check_amounts(demands, inventories, {})
    settle.insert_allocations(conn, demands, inventories)
    return True


def _parameters(claim: Claim) -> dict[str, Any]:
    """Return the bound parameters of a consumer and the names of its owners."""
    return {
        'consumer_uuid': claim.consumer_uuid,
        f'name{statements.PROJECT}': claim.project_id,
        f'name{statements.USER}': claim.user_id,
        f'name{statements.TYPE}': claim.consumer_type,
    }


def _insert_consumer(conn: sa.Connection, parameters: Mapping[str, Any]) -> bool:
    """Insert the consumer; return False if it exists."""
    insert = statements.INSERT_NEW_CONSUMER[conn.dialect.name]
    return bool(conn.execute(insert, parameters).rowcount == 1)
