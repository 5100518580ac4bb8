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

    :param name: the method and what it does, for reports; no two requests of a start state have one
        name
    :param shrinks: it may leave an inventory with less capacity than usage
    """

    name: str
    path: str
    body: Any = field(default=None, compare=False)
    version: str = 'latest'
    shrinks: bool = False

    @property
    def method(self) -> str:
        """The method, which is the first word of the name."""
        return self.name.split()[0]

    @property
    def consumers(self) -> set[str]:
        """The consumers that it writes."""
        return {one for one in (C, N, D, M) if one in f'{self.path} {self.body}'}

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
    :param has_root: whether the provider `ROOT` has a root; old releases could leave NULL
    """

    name: str
    c_is_recorded: bool = True
    c_uses: int = 6
    has_generations: bool = True
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

    def write(self, engine: sa.Engine) -> None:
        """Replace all rows of a database by those of this state."""
        with engine.begin() as conn:
            for statement in self.statements():
                conn.execute(statement)

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

    def rows(self) -> dict[str, Rows]:
        """The rows by the name of the table, tables in the order of insertion."""
        owner_ids = dict.fromkeys(('project_id', 'user_id', 'consumer_type_id'), _ONLY)
        generation = 1 if self.has_generations else None
        consumers = [_row(_ONLY, uuid=C, generation=generation, **owner_ids)]
        return {
            'projects': [_row(_ONLY, external_id='project')],
            'users': [_row(_ONLY, external_id='user')],
            'consumer_types': [_row(_ONLY, name='INSTANCE')],
            'consumers': consumers if self.c_is_recorded else [],
            'resource_classes': [
                _row(GOLD, name='CUSTOM_GOLD'),
                _row(SILVER, name='CUSTOM_SILVER'),
            ],
            'traits': [_row(_RED, name='CUSTOM_RED'), _row(_BLUE, name='CUSTOM_BLUE')],
            'placement_aggregates': [_row(_ONLY, uuid=OLD_AGGREGATE)],
            'resource_providers': [
                _provider_row(uuid, _ROOTS[uuid], self.has_generations)
                | ({} if self.has_root or uuid != ROOT else {'root_provider_id': None})
                for uuid in _ROOTS
            ],
            'inventories': [
                _row(
                    1_000_001 + number,
                    **_of(provider),
                    resource_class_id=class_id,
                    **_inventory(total),
                )
                for number, (provider, class_id, total) in enumerate(
                    ((ROOT, VCPU, 10), (LEAF, VCPU, 8), (OTHER, VCPU, 10), (OTHER, SILVER, 4))
                )
            ],
            'allocations': [
                _row(_ONLY, **_of(ROOT), consumer_id=C, resource_class_id=VCPU, used=self.c_uses)
            ],
            'resource_provider_traits': [
                {'created_at': _CREATED_AT, 'trait_id': _RED, **_of(LEAF)}
            ],
            'resource_provider_aggregates': [
                {'created_at': _CREATED_AT, 'aggregate_id': _ONLY, **_of(LEAF)}
            ],
        }


RECORDED = Start('all rows present')
NO_GENERATIONS = Start('no generations', has_generations=False)
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


def _of(provider: str) -> dict[str, int]:
    return {'resource_provider_id': _IDS[provider]}


def _inventory(total: int) -> dict[str, float]:
    units = {'min_unit': 1, 'max_unit': 2147483647, 'step_size': 1}
    return {'total': total, 'reserved': 0, 'allocation_ratio': 1.0, **units}


Shares = Mapping[str, Mapping[str, int]]
_PROVIDERS = '/resource_providers'


def claims(start: Start) -> list[Request]:
    """Requests that write allocations; the generations are those of the start state."""
    own, vcpu = start.c_generation, {ROOT: {'VCPU': 4}}
    several = {LEAF: {'VCPU': 1}, OTHER: {'CUSTOM_SILVER': 2, 'VCPU': 1}}
    all_of_root, moved = {ROOT: {'VCPU': 10}}, {LEAF: {'VCPU': 6}}
    gold = {LEAF: _inventories(start, LEAF, VCPU=8, CUSTOM_GOLD=4)}
    emptied = {N: old_claim({}), D: old_claim(vcpu)}
    share = {C: claim(moved, own), M: claim({ROOT: {'VCPU': 6}}, None)}
    exchange = {C: claim({}, own), N: claim(all_of_root, None)}
    old_exchange = {C: old_claim({}), N: old_claim({ROOT: {'VCPU': 9}})}
    reshape = {
        'inventories': {
            ROOT: _inventories(start, ROOT, CUSTOM_GOLD=1),
            LEAF: _inventories(start, LEAF, VCPU=10),
        },
        'allocations': {C: claim({LEAF: {'VCPU': start.c_uses}}, own)},
    }
    return [
        put('N uses 4 of ROOT', N, vcpu, None, 'new'),
        put('D uses 4 of ROOT', D, vcpu, None, 'new'),
        old_put('N uses 3 of ROOT', N, {ROOT: {'VCPU': 3}}, 'new'),
        put('D uses 4 of LEAF', D, {LEAF: {'VCPU': 4}}, None),
        put('N uses LEAF and silver of OTHER', N, several, None),
        put('C uses 10 of ROOT', C, all_of_root, own),
        old_put('C uses 10 of ROOT', C, all_of_root),
        put('C moves to LEAF', C, moved, own),
        old_put('C moves to LEAF', C, moved),
        put('C is emptied', C, {}, own),
        put('N is emptied', N, {}, None),
        Request('POST allocations 1.13: N is emptied, D uses 4', '/allocations', emptied, '1.13'),
        Request('POST allocations: C moves to LEAF, M takes its share', '/allocations', share),
        Request('POST allocations: C is emptied for N', '/allocations', exchange),
        Request('POST allocations 1.13: C is emptied for N', '/allocations', old_exchange, '1.13'),
        release('C', C),
        release('N', N),
        Request('POST reshaper: ROOT gives VCPU and C to LEAF', '/reshaper', reshape),
        Request(
            'POST reshaper: LEAF gets gold', '/reshaper', {'inventories': gold, 'allocations': {}}
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
        Request(f'GET candidates: {what}', f'/allocation_candidates?{query}')
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
    return [Request(f'GET {path}', path) for path in paths]


def every(start: Start) -> list[Request]:
    """All writing requests."""
    return [*claims(start), *structure(start)]


def claim(shares: Shares, generation: int | None, project: str = 'project') -> dict[str, Any]:
    """What one consumer uses from now on, in the words of microversion 1.38."""
    consumer_type = 'INSTANCE' if project == 'project' else 'NEW'
    later = {'consumer_generation': generation, 'consumer_type': consumer_type}
    return {**old_claim(shares, project), **later}


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
    body = claim(shares, generation, project)
    return Request(f'PUT allocations: {what}', f'/allocations/{consumer}', body)


def old_put(what: str, consumer: str, shares: Shares, project: str = 'project') -> Request:
    """PUT /allocations/{consumer_uuid} without a consumer generation."""
    body = old_claim(shares, project)
    return Request(f'PUT allocations 1.12: {what}', f'/allocations/{consumer}', body, '1.12')


def release(name: str, consumer: str) -> Request:
    """DELETE /allocations/{consumer_uuid}."""
    return Request(f'DELETE allocations: {name}', f'/allocations/{consumer}')


def _inventories(start: Start, provider: str, **totals: int) -> dict[str, Any]:
    return {
        'resource_provider_generation': start.generation(provider),
        'inventories': {name: {'total': total} for name, total in totals.items()},
    }


def _provider_requests() -> list[Request]:
    def create(what: str, name: str, parent: str | None) -> Request:
        body = {'name': name, 'uuid': FRESH, 'parent_provider_uuid': parent}
        return Request(f'POST provider: {what}', _PROVIDERS, body)

    def update(what: str, uuid: str, **values: Any) -> Request:
        body = {'name': _NAMES[uuid], **values}
        return Request(f'PUT provider: {what}', f'{_PROVIDERS}/{uuid}', body)

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
        Request('DELETE provider: LEAF', f'{_PROVIDERS}/{LEAF}'),
        Request('DELETE provider: CHILD', f'{_PROVIDERS}/{CHILD}'),
        Request('DELETE provider: OTHER, a root', f'{_PROVIDERS}/{OTHER}'),
        Request('DELETE provider: ROOT', f'{_PROVIDERS}/{ROOT}'),
    ]


def _inventory_requests(start: Start) -> list[Request]:
    leaf, child, root = (f'{_PROVIDERS}/{own}/inventories' for own in (LEAF, CHILD, ROOT))
    small = _inventories(start, LEAF, VCPU=3, CUSTOM_GOLD=4)
    one = {'total': 7, 'resource_provider_generation': start.generation(ROOT)}
    silver = f'{_PROVIDERS}/{OTHER}/inventories/CUSTOM_SILVER'
    gold, vcpu = (
        {'resource_class': name, 'total': total}
        for name, total in (('CUSTOM_GOLD', 4), ('VCPU', 5))
    )
    return [
        Request('POST inventories: LEAF gets gold', leaf, gold),
        Request('PUT inventories: LEAF has 3 VCPU and gold', leaf, small, shrinks=True),
        Request('PUT inventories: LEAF has none', leaf, _inventories(start, LEAF)),
        Request('PUT inventories: CHILD has 3 VCPU', child, _inventories(start, CHILD, VCPU=3)),
        Request('POST inventories: CHILD gets 5 VCPU', child, vcpu),
        Request('PUT inventories: ROOT has none', root, _inventories(start, ROOT)),
        Request('PUT inventories: ROOT has 7 VCPU', f'{root}/VCPU', one, shrinks=True),
        Request('DELETE inventories: all of LEAF', leaf),
        Request('DELETE inventories: all of ROOT', root),
        Request('DELETE inventories: VCPU of LEAF', f'{leaf}/VCPU'),
        Request('DELETE inventories: VCPU of ROOT', f'{root}/VCPU'),
        Request('DELETE inventories: silver of OTHER', silver),
    ]


def _label_requests(start: Start) -> list[Request]:
    """Traits, aggregates and resource classes."""
    generation = {'resource_provider_generation': start.generation(LEAF)}
    traits, aggregates = (f'{_PROVIDERS}/{LEAF}/{kind}' for kind in ('traits', 'aggregates'))
    blue = {'traits': ['CUSTOM_BLUE'], **generation}
    red_and_new = {'traits': ['CUSTOM_RED', 'CUSTOM_NEW'], **generation}
    both = {'aggregates': [NEW_AGGREGATE, OLD_AGGREGATE], **generation}
    other = f'{_PROVIDERS}/{OTHER}/aggregates'
    classes, new = '/resource_classes', {'name': 'CUSTOM_NEW'}
    return [
        Request('PUT provider traits: LEAF has blue', traits, blue),
        Request('PUT provider traits: LEAF has red and new', traits, red_and_new),
        Request('DELETE provider traits: LEAF', traits),
        Request('PUT trait: new', '/traits/CUSTOM_NEW'),
        Request('DELETE trait: red', '/traits/CUSTOM_RED'),
        Request('DELETE trait: blue', '/traits/CUSTOM_BLUE'),
        Request('PUT aggregates 1.1: LEAF in new', aggregates, [NEW_AGGREGATE], '1.1'),
        Request('PUT aggregates 1.1: LEAF in none', aggregates, [], '1.1'),
        Request('PUT aggregates: LEAF in new and old', aggregates, both),
        Request('PUT aggregates 1.1: OTHER in new', other, [NEW_AGGREGATE], '1.1'),
        Request('POST class: new', classes, new),
        Request('PUT class: new', f'{classes}/CUSTOM_NEW'),
        Request('PUT class: newer', f'{classes}/CUSTOM_NEWER'),
        Request('PUT class 1.2: silver becomes new', f'{classes}/CUSTOM_SILVER', new, '1.2'),
        Request('DELETE class: gold', f'{classes}/CUSTOM_GOLD'),
        Request('DELETE class: silver', f'{classes}/CUSTOM_SILVER'),
    ]
