"""Builds the body of PUT /allocations/{consumer} for each simulated claim."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from placement import microversion
from placement.admin.headroom.simulation import Step
from placement.candidates import model, render

# The bodies are valid from this microversion on.
_VERSION = microversion.CONSUMER_TYPES
# The consumer type of the instances of Nova.
_CONSUMER_TYPE = 'INSTANCE'


@dataclass(frozen=True, slots=True)
class Owner:
    """The project and the user of the claims."""

    project: str
    user: str


class Line(NamedTuple):
    """A line of the file, and how often it is repeated."""

    text: bytes
    times: int


def lines(
    steps: Sequence[Step],
    names: model.Query[str],
    query: model.Query[int],
    anchors: Iterable[model.Anchor],
    owner: Owner,
) -> Iterator[Line]:
    """Yield the claims in the order of the simulation, as lines of JSON.

    :param names: the query with names
    :param query: the same query with ids
    :param anchors: all anchors of the cloud
    """
    requests = render.allocation_requests(
        (step.binding for step in steps),
        model.slots_of(query),
        {provider.id: provider.uuid for anchor in anchors for provider in anchor.tree},
        class_names(names, query),
        _VERSION,
        orjson.dumps,
    )
    for step, request in zip(steps, requests, strict=True):
        body = {
            **orjson.loads(request),
            'project_id': owner.project,
            'user_id': owner.user,
            'consumer_generation': None,
            'consumer_type': _CONSUMER_TYPE,
        }
        yield Line(orjson.dumps(body) + b'\n', step.times)


def class_names(names: model.Query[str], query: model.Query[int]) -> dict[int, str]:
    """Return id -> name of the resource classes of a query.

    :param names: the query with names
    :param query: the same query with ids
    """
    return {
        class_id: name
        for named, group in zip(names.groups, query.groups, strict=True)
        for (name, _), (class_id, _) in zip(named.amounts, group.amounts, strict=True)
    }


def first(all_lines: Iterable[Line], maximum: int) -> Iterator[Line]:
    """Yield the first lines, so that there are at most `maximum` with their repetitions.

    :param maximum: at least 1
    """
    left = maximum
    for line in all_lines:
        yield line._replace(times=min(line.times, left))
        left -= line.times
        if left <= 0:
            return
