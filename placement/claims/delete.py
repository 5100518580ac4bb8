"""DELETE /allocations/{consumer_uuid}: delete all allocations of a consumer."""

import sqlalchemy as sa

from placement import exception
from placement.claims import consumer, statements
from placement.db import engine


def delete_allocations(consumer_uuid: str) -> None:
    """Delete a consumer and all its allocations.

    The request contains no generation to check, and no provider generation is incremented.

    :raises exception.AllocationsNotFound: the consumer has no allocations
    """

    def work(conn: sa.Connection) -> None:
        consumers = consumer.lock(conn, [consumer_uuid])
        uuids = {consumer_uuid, *(stored.uuid for stored in consumers.values())}
        parameters = {'uuids': sorted(uuids)}
        deleted = conn.execute(statements.DELETE_ALLOCATIONS_OF_CONSUMERS, parameters).rowcount
        if not consumers and consumer.lock(conn, [consumer_uuid]):
            # A concurrent transaction created the consumer after the first attempt to lock it, and
            # may have inserted allocations after the DELETE.
            raise exception.ConcurrentChange(f'Consumer {consumer_uuid}')
        if not deleted:
            raise exception.AllocationsNotFound(consumer_uuid)
        consumer.delete(conn, [stored.id for stored in consumers.values()])

    engine.write(work)
