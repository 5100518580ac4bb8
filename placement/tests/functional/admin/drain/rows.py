"""The consumers of a random cloud as rows in the database of a running service."""

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.tests.unit.admin.drain import clouds
from placement.tests.worlds import rows as world_rows

_TYPES = {None: None, 'INSTANCE': 1, 'MIGRATION': 2}


def fill(engine: sa.Engine, case: clouds.Case) -> None:
    """Replace the providers and consumers of the database by those of a case."""
    world_rows.fill(engine, case.empty)
    with engine.begin() as conn:
        types = [{'id': id_, 'name': name} for name, id_ in _TYPES.items() if name]
        conn.execute(models.consumer_types.insert(), types)
        for table in (models.projects, models.users):
            names = [{'id': n, 'external_id': f'{table.name}-{n}'} for n in (1, 2)]
            conn.execute(table.insert(), names)
        if not case.consumers:
            return
        conn.execute(
            models.consumers.insert(),
            [
                {
                    'uuid': consumer.uuid,
                    'project_id': 1 + number % 2,
                    'user_id': 2 - number % 2,
                    'generation': number,
                    'consumer_type_id': _TYPES[consumer.type],
                }
                for number, consumer in enumerate(case.consumers)
            ],
        )
        conn.execute(
            models.allocations.insert(),
            [
                {
                    'consumer_id': consumer.uuid,
                    'resource_provider_id': provider_id,
                    'resource_class_id': class_id,
                    'used': amount,
                }
                for consumer in case.consumers
                for provider_id, class_id, amount in consumer.allocations
            ],
        )
