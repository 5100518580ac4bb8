"""Import rows that several clouds have in common, for example traits, classes and projects.

An existing row with the same name is used. A standard trait or class gets the times of the file.
"""

from collections.abc import Mapping, Sequence
import contextlib
from typing import Any

import os_resource_classes as orc
import sqlalchemy as sa

from placement.admin.transfer import insertion, model, references, tables
from placement.admin.transfer.document import InvalidLineError, shown
from placement.objects import resource_class, sync

# Lines of these kinds may describe existing rows.
KINDS = (
    model.RESOURCE_CLASS,
    model.TRAIT,
    model.AGGREGATE,
    model.CONSUMER_TYPE,
    model.PROJECT,
    model.USER,
)
# Standard rows of these kinds exist in every database that a service has used.
WITH_STANDARDS = (model.RESOURCE_CLASS, model.TRAIT)
_STANDARD_IDS = {name: id_ for id_, name in enumerate(orc.STANDARDS)}


def write(
    conn: sa.Connection, known: references.Known, kind: model.Kind, lines: Sequence[model.Line]
) -> int:
    """Insert the rows that do not exist, and return their number.

    :raises InvalidLineError: the database rejects a row, or a standard class is unknown
    """
    (name,) = kind.key
    ids = references.existing(conn, kind.name, [line.values[name] for line in lines])
    new = [line for line in lines if line.values[name] not in ids]
    known[kind.name].shared.update(ids)
    if kind in WITH_STANDARDS:
        _update_times(
            conn, kind, {ids[n]: v for n, v in _standards(lines, name).items() if n in ids}
        )
    if kind is model.RESOURCE_CLASS:
        _insert_classes(conn, known, new)
    else:
        insertion.insert(conn, new, [line.values for line in new])
    return len(new)


def is_standard(name: str) -> bool:
    """Return whether this is the name of a standard trait or class."""
    return not resource_class.is_custom(name)


def _standards(lines: Sequence[model.Line], field: str) -> dict[str, Mapping[str, Any]]:
    return {line.values[field]: line.values for line in lines if is_standard(line.values[field])}


def _update_times(
    conn: sa.Connection, kind: model.Kind, values: Mapping[int, Mapping[str, Any]]
) -> None:
    """Set the times of existing rows.

    :param values: the values of the lines by row id
    """
    if not values:
        return
    table = tables.of(kind).table
    times = {
        name: sa.case(
            {id_: sa.literal(line[name], sa.DateTime) for id_, line in values.items()},
            value=table.c.id,
        )
        for name in ('created_at', 'updated_at')
    }
    conn.execute(sa.update(table).where(table.c.id.in_(sorted(values))).values(**times))


def _insert_classes(
    conn: sa.Connection, known: references.Known, lines: Sequence[model.Line]
) -> None:
    """Insert resource classes with the ids that the service would choose."""
    column = tables.of(model.RESOURCE_CLASS).table.c.id
    highest = conn.scalar(sa.select(sa.func.max(column))) or 0
    next_id = max(resource_class.FIRST_CUSTOM_ID, highest + 1)
    rows = []
    for line in lines:
        name = line.values['name']
        if is_standard(name):
            if name not in _STANDARD_IDS:
                raise InvalidLineError(
                    line.number,
                    f'The standard resource class {shown(name)} is unknown; install a newer '
                    'version of os-resource-classes',
                )
            rows.append({'id': _STANDARD_IDS[name], **line.values})
            # Its id can be less than the largest id before the import.
            known[model.RESOURCE_CLASS.name].shared.add(name)
        else:
            rows.append({'id': next_id, **line.values})
            next_id += 1
    zero = sync.explicit_zero(conn) if rows else contextlib.nullcontext()
    with zero:
        insertion.insert(conn, lines, rows)
