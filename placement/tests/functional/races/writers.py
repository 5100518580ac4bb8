"""The requests that the schedules combine, and the start states that they change.

The requests act on the same few rows, so most pairs conflict: each request that changes a provider
names `ROOT` or `LEAF`, each consumer is `C`, `N` or `D`, and the names that requests create
are the same. The start state is two trees: `ROOT` with the children `CHILD` and `LEAF`, and
`OTHER`. Consumer `C` uses 6 of the 10 VCPU of `ROOT`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
import datetime
from typing import Any

import sqlalchemy as sa

from placement import handler
from placement.claims.claim import Claim
from placement.db.sqlalchemy import models

# The order of the UUIDs differs from the order of the ids. The ids are above all that the
# sequences of PostgreSQL reach: an explicit id does not advance them.
ROOT, CHILD, LEAF, OTHER, FRESH = (
    f'{n}0000000-0000-4000-8000-00000000000a' for n in (4, 2, 1, 3, 5)
)
C, N, D, M = (f'{n}0000000-0000-4000-8000-00000000000c' for n in '6789')
OLD_AGGREGATE, NEW_AGGREGATE = (f'{n}0000000-0000-4000-8000-00000000000e' for n in '21')
_IDS = {ROOT: 1_000_001, CHILD: 1_000_002, LEAF: 1_000_003, OTHER: 1_000_004}
# The roots come first, because MySQL checks each inserted row.
_ROOTS = {ROOT: ROOT, OTHER: OTHER, CHILD: ROOT, LEAF: ROOT}
_NAMES = {ROOT: 'root', CHILD: 'child', LEAF: 'leaf', OTHER: 'other'}
_GENERATIONS = {ROOT: 3, CHILD: 0, LEAF: 2, OTHER: 1}
VCPU, GOLD, SILVER = 0, 10000, 10001
_RED, _BLUE, _ONLY = 1_000_001, 1_000_002, 1_000_001
_CREATED_AT = datetime.datetime(2026, 1, 1, 12)

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    :param name: what it does, for reports; no two requests of a start state have one name
    :param consumers: the consumers that it writes
    :param shrinks: it may leave an inventory with less capacity than usage
    """

    name: str
    method: str
    path: str
    body: Any = field(default=None, compare=False)
    version: str = 'latest'
    consumers: frozenset[str] = frozenset()
    shrinks: bool = False

    @property
    def route(self) -> object:
        """The application that handles the request."""
        match, _ = handler.Mapper(handler.ROUTE_DECLARATIONS).match(self.path.partition('?')[0])
        return match.methods[self.method]


def writing_routes() -> set[object]:
    """Return the applications of all requests that write."""
    return {
        application
        for methods in handler.ROUTE_DECLARATIONS.values()
        for method, application in methods.items()
        if method != 'GET'
    }


@dataclass(frozen=True, slots=True)
class Start:
    """A start state: the rows of all tables.

    :param c_is_recorded: whether consumer `C` has a row in `consumers`; databases that old
        releases wrote may have allocations without one
    :param has_generations: whether providers and consumers have generations; those of old releases
        can have none, which counts as 0
    :param differs: the database has other ids for the names of classes and traits, other owners,
        another aggregate, and another tree of `LEAF`. Of such a state, a process remembers what is
        wrong in the other states
    :param has_root: whether the provider `ROOT` has a root; old releases could leave NULL
    """

    name: str
    c_is_recorded: bool = True
    c_uses: int = 6
    has_generations: bool = True
    differs: bool = False
    has_root: bool = True

    def statements(self) -> Iterator[Any]:
        """The statements that replace all rows by those of this state."""
        rows = self.rows()
        # Providers refer to each other, and MySQL checks that row by row.
        yield sa.update(models.resource_providers).values(
            root_provider_id=None, parent_provider_id=None, updated_at=sa.null()
        )
        for table in reversed(models.metadata.sorted_tables):
            delete = sa.delete(table)
            yield delete.where(table.c.id != 0) if table is models.resource_classes else delete
        for table in models.metadata.sorted_tables:
            if rows[table.name]:
                yield sa.insert(table).values(list(rows[table.name]))

    @property
    def is_damaged(self) -> bool:
        """Whether the rows break a rule."""
        return not (self.c_is_recorded and self.has_root)

    @property
    def c_generation(self) -> int | None:
        """The consumer generation of `C` that a client has to send."""
        if not self.c_is_recorded:
            return None
        return 1 if self.has_generations else 0

    def generation(self, provider: str) -> int:
        """The generation of a provider that a client has to send."""
        return _GENERATIONS[provider] if self.has_generations else 0

    def claim(self) -> Claim:
        """The claim with the project, user and consumer type of `C`."""
        allocations = {ROOT: {'VCPU': self.c_uses}}
        return Claim(C, *self._owners(), None, True, allocations)

    def _owners(self) -> tuple[str, str, str]:
        """The project, user and consumer type: those that `put` names, by default or as new."""
        return ('new', 'new', 'NEW') if self.differs else ('project', 'user', 'INSTANCE')

    def rows(self) -> dict[str, Rows]:
        """The rows by the name of the table, tables in the order of insertion."""
        owner_ids = dict.fromkeys(('project_id', 'user_id', 'consumer_type_id'), _ONLY)
        generation = 1 if self.has_generations else None
        consumers = [_row(_ONLY, uuid=C, generation=generation, **owner_ids)]
        project, user, consumer_type = self._owners()
        gold, silver = (SILVER, GOLD) if self.differs else (GOLD, SILVER)
        red, blue = (_BLUE, _RED) if self.differs else (_RED, _BLUE)
        roots = _ROOTS | ({LEAF: OTHER} if self.differs else {})
        aggregate = NEW_AGGREGATE if self.differs else OLD_AGGREGATE
        return {
            'projects': [_row(_ONLY, external_id=project)],
            'users': [_row(_ONLY, external_id=user)],
            'consumer_types': [_row(_ONLY, name=consumer_type)],
            'consumers': consumers if self.c_is_recorded else [],
            'resource_classes': [
                _row(gold, name='CUSTOM_GOLD'),
                _row(silver, name='CUSTOM_SILVER'),
            ],
            'traits': [_row(red, name='CUSTOM_RED'), _row(blue, name='CUSTOM_BLUE')],
            'placement_aggregates': [_row(_ONLY, uuid=aggregate)],
            'resource_providers': [
                _provider_row(uuid, roots[uuid], self.has_generations)
                | ({} if self.has_root or uuid != ROOT else {'root_provider_id': None})
                for uuid in _ROOTS
            ],
            'inventories': [
                _inventory_row(1_000_001, ROOT, VCPU, 10),
                _inventory_row(1_000_002, LEAF, VCPU, 8),
                _inventory_row(1_000_003, OTHER, VCPU, 10),
                _inventory_row(1_000_004, OTHER, SILVER, 4),
            ],
            'allocations': [
                _row(
                    _ONLY,
                    resource_provider_id=_IDS[ROOT],
                    consumer_id=C,
                    resource_class_id=VCPU,
                    used=self.c_uses,
                )
            ],
            'resource_provider_traits': [
                {
                    'created_at': _CREATED_AT,
                    'trait_id': _RED,
                    'resource_provider_id': _IDS[LEAF],
                }
            ],
            'resource_provider_aggregates': [
                {
                    'created_at': _CREATED_AT,
                    'resource_provider_id': _IDS[LEAF],
                    'aggregate_id': _ONLY,
                }
            ],
        }


RECORDED = Start('all rows present')
NO_GENERATIONS = Start('no generations', has_generations=False)
ELSEWHERE = Start('other ids and owners', differs=True)
UNRECORDED = Start('no row of consumer C', c_is_recorded=False)
ROOTLESS = Start('no root of ROOT', has_root=False)
NEARLY_FULL = Start('C uses 8 of 10', c_uses=8)
NEARLY_FULL_UNRECORDED = Start('C uses 8 of 10, no row of C', c_is_recorded=False, c_uses=8)


def _row(id_: int, **values: Any) -> dict[str, Any]:
    return {'created_at': _CREATED_AT, 'id': id_, **values}


def _provider_row(uuid: str, root: str, has_generation: bool) -> dict[str, Any]:
    return _row(
        _IDS[uuid],
        uuid=uuid,
        name=_NAMES[uuid],
        generation=_GENERATIONS[uuid] if has_generation else None,
        root_provider_id=_IDS[root],
        parent_provider_id=None if root == uuid else _IDS[root],
    )


def _inventory_row(id_: int, provider: str, class_id: int, total: int) -> dict[str, Any]:
    return _row(
        id_,
        resource_provider_id=_IDS[provider],
        resource_class_id=class_id,
        total=total,
        reserved=0,
        min_unit=1,
        max_unit=2147483647,
        step_size=1,
        allocation_ratio=1.0,
    )


Shares = Mapping[str, Mapping[str, int]]


def claims(start: Start) -> list[Request]:
    """Requests that write allocations; the generations are those of the start state."""
    own = start.c_generation
    return [
        put('N uses 4 of ROOT', N, {ROOT: {'VCPU': 4}}, None, project='new'),
        put('D uses 4 of ROOT', D, {ROOT: {'VCPU': 4}}, None, project='new'),
        old_put('N uses 3 of ROOT', N, {ROOT: {'VCPU': 3}}, project='new'),
        put('D uses 4 of LEAF', D, {LEAF: {'VCPU': 4}}, None),
        put(
            'N uses LEAF and silver of OTHER',
            N,
            {LEAF: {'VCPU': 1}, OTHER: {'CUSTOM_SILVER': 2, 'VCPU': 1}},
            None,
        ),
        put('C uses 10 of ROOT', C, {ROOT: {'VCPU': 10}}, own),
        old_put('C uses 10 of ROOT', C, {ROOT: {'VCPU': 10}}),
        put('C moves to LEAF', C, {LEAF: {'VCPU': 6}}, own),
        old_put('C moves to LEAF', C, {LEAF: {'VCPU': 6}}),
        put('C is emptied', C, {}, own),
        put('N is emptied', N, {}, None),
        post(
            'N is emptied, D uses 4 of ROOT',
            {N: old_claim({}), D: old_claim({ROOT: {'VCPU': 4}})},
            '1.13',
        ),
        post(
            'C moves to LEAF, M takes its share',
            {C: claim({LEAF: {'VCPU': 6}}, own), M: claim({ROOT: {'VCPU': 6}}, None)},
        ),
        post('C is emptied for N', {C: claim({}, own), N: claim({ROOT: {'VCPU': 10}}, None)}),
        post(
            'C is emptied for N',
            {C: old_claim({}), N: old_claim({ROOT: {'VCPU': 9}})},
            '1.13',
        ),
        release('C', C),
        release('N', N),
        _reshape('ROOT gives VCPU and C to LEAF', start),
        Request(
            'POST /reshaper: LEAF gets gold',
            'POST',
            '/reshaper',
            {
                'inventories': {LEAF: _inventories(start, LEAF, VCPU=8, CUSTOM_GOLD=4)},
                'allocations': {},
            },
        ),
    ]


def structure(start: Start) -> list[Request]:
    """Requests that write anything else."""
    return [*_provider_requests(), *_inventory_requests(start), *_label_requests(start)]


def ahead() -> list[Request]:
    """Requests with a generation of `LEAF` that only another request reaches."""
    return [
        replace(request, name=f'{request.name}, with the next generation', body=body)
        for request in structure(RECORDED)
        if (body := _with_next_generation(request)) is not None
    ]


def _with_next_generation(request: Request) -> Any:
    """The body with the next provider generation; None if the request has none of `LEAF`."""
    key = 'resource_provider_generation'
    if LEAF not in request.path or not isinstance(request.body, dict) or key not in request.body:
        return None
    return {**request.body, key: request.body[key] + 1}


def searches() -> list[Request]:
    """Searches whose responses depend on what the other requests write."""
    queries = {
        'VCPU': 'resources=VCPU:4',
        'VCPU in the tree of LEAF': f'resources=VCPU:1&in_tree={LEAF}',
        'VCPU of two providers': 'resources_A=VCPU:1&resources_B=VCPU:1&group_policy=isolate',
        'red VCPU': 'resources=VCPU:1&required=CUSTOM_RED',
        'VCPU without red': 'resources=VCPU:1&required=!CUSTOM_RED',
        'VCPU in old': f'resources=VCPU:1&member_of={OLD_AGGREGATE}',
        # Only one candidate is possible: the order of the candidates of a tree is not defined.
        'silver, one candidate': 'resources=CUSTOM_SILVER:1&limit=1',
        'silver': 'resources=CUSTOM_SILVER:1',
    }
    return [
        Request(f'GET candidates: {what}', 'GET', f'/allocation_candidates?{query}')
        for what, query in queries.items()
    ]


def reads() -> list[Request]:
    """Reads of what other requests delete or move."""
    provider = f'/resource_providers/{LEAF}'
    kinds = ('inventories', 'usages', 'traits', 'aggregates', 'allocations')
    both = f'required=CUSTOM_RED&member_of={OLD_AGGREGATE}'
    queries = (
        *('', f'uuid={LEAF}', f'in_tree={LEAF}', 'resources=VCPU:1', both),
        f'{both}&resources=VCPU:1&in_tree={ROOT}',
        f'in_tree={ROOT}&required=CUSTOM_UNKNOWN',
        f'{both}&resources=CUSTOM_UNKNOWN:1',
    )
    paths = (
        *(f'/resource_providers?{query}' for query in queries),
        *(provider, f'/resource_providers/{ROOT}/allocations', f'/allocations/{C}'),
        *(f'{provider}/{kind}' for kind in kinds),
        '/usages?project_id=project',
        *(f'/allocation_candidates?resources=VCPU:1{more}' for more in ('', f'&{both}')),
    )
    return [Request(f'GET {path}', 'GET', path) for path in paths]


def every(start: Start) -> list[Request]:
    """All writing requests."""
    return [*claims(start), *structure(start)]


def claim(
    shares: Shares,
    generation: int | None,
    project: str = 'project',
    consumer_type: str = 'INSTANCE',
) -> dict[str, Any]:
    """What one consumer uses from now on, in the words of microversion 1.38."""
    return {
        **old_claim(shares, project),
        'consumer_generation': generation,
        'consumer_type': consumer_type,
    }


def old_claim(shares: Shares, project: str = 'project') -> dict[str, Any]:
    """The same in the words of microversion 1.12, without a consumer generation."""
    return {
        'allocations': {provider: {'resources': amounts} for provider, amounts in shares.items()},
        'project_id': project,
        'user_id': project.replace('project', 'user'),
    }


def put(
    what: str, consumer: str, shares: Shares, generation: int | None, project: str = 'project'
) -> Request:
    """PUT /allocations/{consumer_uuid} with a consumer generation."""
    body = claim(shares, generation, project, 'INSTANCE' if project == 'project' else 'NEW')
    return Request(
        f'PUT allocations: {what}',
        'PUT',
        f'/allocations/{consumer}',
        body,
        consumers=frozenset({consumer}),
    )


def old_put(what: str, consumer: str, shares: Shares, project: str = 'project') -> Request:
    """PUT /allocations/{consumer_uuid} without a consumer generation."""
    return Request(
        f'PUT allocations 1.12: {what}',
        'PUT',
        f'/allocations/{consumer}',
        old_claim(shares, project),
        '1.12',
        frozenset({consumer}),
    )


def post(what: str, body: dict[str, Any], version: str = 'latest') -> Request:
    """POST /allocations."""
    name = f'POST allocations{"" if version == "latest" else f" {version}"}: {what}'
    return Request(name, 'POST', '/allocations', body, version, frozenset(body))


def release(name: str, consumer: str) -> Request:
    """DELETE /allocations/{consumer_uuid}."""
    return Request(
        f'DELETE allocations: {name}',
        'DELETE',
        f'/allocations/{consumer}',
        consumers=frozenset({consumer}),
    )


def _inventories(start: Start, provider: str, **totals: int) -> dict[str, Any]:
    return {
        'resource_provider_generation': start.generation(provider),
        'inventories': {name: {'total': total} for name, total in totals.items()},
    }


def _reshape(what: str, start: Start) -> Request:
    body = {
        'inventories': {
            ROOT: _inventories(start, ROOT, CUSTOM_GOLD=1),
            LEAF: _inventories(start, LEAF, VCPU=10),
        },
        'allocations': {C: claim({LEAF: {'VCPU': start.c_uses}}, start.c_generation)},
    }
    return Request(f'POST /reshaper: {what}', 'POST', '/reshaper', body, consumers=frozenset({C}))


def _provider_requests() -> list[Request]:
    def create(what: str, name: str, parent: str | None) -> Request:
        body = {'name': name, 'uuid': FRESH, 'parent_provider_uuid': parent}
        return Request(f'POST provider: {what}', 'POST', '/resource_providers', body)

    def update(what: str, uuid: str, **values: Any) -> Request:
        body = {'name': _NAMES[uuid], **values}
        return Request(f'PUT provider: {what}', 'PUT', f'/resource_providers/{uuid}', body)

    def delete(what: str, uuid: str) -> Request:
        return Request(f'DELETE provider: {what}', 'DELETE', f'/resource_providers/{uuid}')

    return [
        create('fresh, a root', 'fresh', None),
        create('fresh below LEAF', 'fresh', LEAF),
        create('twig below ROOT', 'twig', ROOT),
        update('LEAF is named fresh', LEAF, name='fresh'),
        update('OTHER is named fresh', OTHER, name='fresh'),
        update('LEAF moves below CHILD', LEAF, parent_provider_uuid=CHILD),
        update('CHILD moves below LEAF', CHILD, parent_provider_uuid=LEAF),
        update('LEAF moves below OTHER', LEAF, parent_provider_uuid=OTHER),
        update('OTHER moves below LEAF', OTHER, parent_provider_uuid=LEAF),
        update('ROOT moves below OTHER', ROOT, parent_provider_uuid=OTHER),
        update('LEAF becomes a root', LEAF, parent_provider_uuid=None),
        delete('LEAF', LEAF),
        delete('CHILD', CHILD),
        delete('OTHER, a root', OTHER),
        delete('ROOT', ROOT),
    ]


def _inventory_requests(start: Start) -> list[Request]:
    def send(what: str, method: str, path: str, body: Any = None, shrinks: bool = False) -> Request:
        return Request(
            f'{method} inventories: {what}',
            method,
            f'/resource_providers/{path}',
            body,
            shrinks=shrinks,
        )

    one = {'total': 7, 'resource_provider_generation': start.generation(ROOT)}
    return [
        send(
            'LEAF gets gold',
            'POST',
            f'{LEAF}/inventories',
            {'resource_class': 'CUSTOM_GOLD', 'total': 4},
        ),
        send(
            'LEAF has 3 VCPU and gold',
            'PUT',
            f'{LEAF}/inventories',
            _inventories(start, LEAF, VCPU=3, CUSTOM_GOLD=4),
            shrinks=True,
        ),
        send('LEAF has none', 'PUT', f'{LEAF}/inventories', _inventories(start, LEAF)),
        send('CHILD has 3 VCPU', 'PUT', f'{CHILD}/inventories', _inventories(start, CHILD, VCPU=3)),
        send(
            'CHILD gets 5 VCPU',
            'POST',
            f'{CHILD}/inventories',
            {'resource_class': 'VCPU', 'total': 5},
        ),
        send('ROOT has none', 'PUT', f'{ROOT}/inventories', _inventories(start, ROOT)),
        send('ROOT has 7 VCPU', 'PUT', f'{ROOT}/inventories/VCPU', one, shrinks=True),
        send('all of LEAF', 'DELETE', f'{LEAF}/inventories'),
        send('all of ROOT', 'DELETE', f'{ROOT}/inventories'),
        send('VCPU of LEAF', 'DELETE', f'{LEAF}/inventories/VCPU'),
        send('VCPU of ROOT', 'DELETE', f'{ROOT}/inventories/VCPU'),
        send('silver of OTHER', 'DELETE', f'{OTHER}/inventories/CUSTOM_SILVER'),
    ]


def _label_requests(start: Start) -> list[Request]:
    """Traits, aggregates and resource classes."""

    def traits(what: str, *names: str) -> Request:
        body = {'traits': names, 'resource_provider_generation': start.generation(LEAF)}
        return Request(
            f'PUT provider traits: {what}', 'PUT', f'/resource_providers/{LEAF}/traits', body
        )

    def aggregates(what: str, provider: str, body: Any, version: str) -> Request:
        path = f'/resource_providers/{provider}/aggregates'
        return Request(f'PUT aggregates {version}: {what}', 'PUT', path, body, version)

    with_generation = {
        'aggregates': [NEW_AGGREGATE, OLD_AGGREGATE],
        'resource_provider_generation': start.generation(LEAF),
    }
    silver = '/resource_classes/CUSTOM_SILVER'
    return [
        traits('LEAF has blue', 'CUSTOM_BLUE'),
        traits('LEAF has red and new', 'CUSTOM_RED', 'CUSTOM_NEW'),
        Request('DELETE provider traits: LEAF', 'DELETE', f'/resource_providers/{LEAF}/traits'),
        Request('PUT trait: new', 'PUT', '/traits/CUSTOM_NEW'),
        Request('DELETE trait: red', 'DELETE', '/traits/CUSTOM_RED'),
        Request('DELETE trait: blue', 'DELETE', '/traits/CUSTOM_BLUE'),
        aggregates('LEAF in new', LEAF, [NEW_AGGREGATE], '1.1'),
        aggregates('LEAF in none', LEAF, [], '1.1'),
        aggregates('LEAF in new and old', LEAF, with_generation, 'latest'),
        aggregates('OTHER in new', OTHER, [NEW_AGGREGATE], '1.1'),
        Request('POST class: new', 'POST', '/resource_classes', {'name': 'CUSTOM_NEW'}),
        Request('PUT class: new', 'PUT', '/resource_classes/CUSTOM_NEW'),
        Request('PUT class: newer', 'PUT', '/resource_classes/CUSTOM_NEWER'),
        Request('PUT class 1.2: silver becomes new', 'PUT', silver, {'name': 'CUSTOM_NEW'}, '1.2'),
        Request('DELETE class: gold', 'DELETE', '/resource_classes/CUSTOM_GOLD'),
        Request('DELETE class: silver', 'DELETE', silver),
    ]
