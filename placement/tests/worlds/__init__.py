"""The one builder of clouds for tests: small worlds of providers, from drawings.

A drawing has one provider per line; children are indented below their parent::

    CN[V:8, M: total 1024 step_size 64] {AVX} @A,B
      K[VGPU:2]
    SS[D:100] {SHARE} @A

Inventories are in square brackets (a number alone is the total; `used` is the usage), traits in
braces, and aggregates after @. Short names stand for long ones: V, M, D and VF for classes,
SHARE for the sharing trait, DISABLED for COMPUTE_STATUS_DISABLED, any other trait T that is not a
standard trait for CUSTOM_T.
Queries and expected candidates use these names too: see `World.query` and `expected`.

`tools/serve.py` uses this module without the packages of the tests, so it imports none of them.

`World.claimed` adds consumers. `rows` and `api` create a world as rows and with requests, `seeded`
and `strategies` generate random worlds and queries, and `naive` defines what is correct.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
import dataclasses
from dataclasses import dataclass, field
import functools
import re
from typing import Any
from urllib import parse
import uuid

import os_resource_classes
import os_traits

from placement import capacity
from placement.candidates import model, request, solver
from placement.microversion import MAX_VERSION, Version

CLASSES = {'V': 'VCPU', 'M': 'MEMORY_MB', 'D': 'DISK_GB', 'VF': 'SRIOV_NET_VF'}
SHORT_CLASSES = {name: short for short, name in CLASSES.items()}
NEWEST = MAX_VERSION
# Traits that exist in every world, so that queries may name them.
EXISTING_TRAITS = (
    'AVX',
    'GOLD',
    'BLUE',
    'VMX',
    'PHYS1',
    'PHYS2',
    'T1',
    'T2',
    'A',
    'B',
    'HW',
    'NUMA',
)
_TRAITS = {
    'SHARE': os_traits.MISC_SHARES_VIA_AGGREGATE,
    'DISABLED': os_traits.COMPUTE_STATUS_DISABLED,
}
_STANDARD = frozenset(os_traits.get_traits())
NAMESPACE = uuid.UUID('6f1d2f5e-4f38-4cf9-9d68-7f6b7c7a6a11')
_DEFAULTS = {
    'reserved': 0,
    'min_unit': 1,
    'max_unit': capacity.MAX_INT,
    'step_size': 1,
    'allocation_ratio': 1.0,
    'used': 0,
}
_LINE = re.compile(
    r'(?P<indent> *)(?P<name>[\w-]+)(\[(?P<inventories>[^]]*)\])? *'
    r'(\{(?P<traits>[^}]*)\})? *(@(?P<aggs>\S+))?$'
)

# A multiset of candidates as pairs (allocations, mappings). Mappings are None if they are not
# compared.
Candidates = Counter[tuple[frozenset[Any], frozenset[Any] | None]]
Find = Callable[[model.Anchor], Iterable[model.Binding]]


def trait(short: str) -> str:
    return _TRAITS.get(short) or (short if short in _STANDARD else f'CUSTOM_{short}')


def inventory(total: int, used: int = 0) -> dict[str, Any]:
    """Return an inventory with default values, and its usage."""
    return {**_DEFAULTS, 'total': total, 'used': used}


def uuid_of(name: str) -> str:
    """Return the UUID of a provider or aggregate."""
    return str(uuid.uuid5(NAMESPACE, name))


@dataclass(frozen=True)
class Host:
    """One provider of a drawing."""

    name: str
    parent: str | None = None
    inventories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()

    @property
    def uuid(self) -> str:
        return uuid_of(self.name)


@dataclass(frozen=True)
class Consumer:
    """A consumer, whose allocations are by provider name and resource class."""

    name: str
    allocations: Mapping[str, Mapping[str, int]]
    type: str | None = 'INSTANCE'
    project: str = 'project'
    user: str = 'user'
    generation: int = 1

    @property
    def uuid(self) -> str:
        return uuid_of(self.name)


@dataclass(frozen=True)
class World:
    """The providers of a drawing, and consumers.

    The usage of an inventory includes the allocations of these consumers.
    """

    hosts: tuple[Host, ...]
    consumers: tuple[Consumer, ...] = ()

    @classmethod
    def of(cls, drawing: str) -> 'World':
        hosts: list[Host] = []
        above: list[tuple[int, str]] = []
        for line in filter(str.strip, drawing.splitlines()):
            match = _LINE.match(line.rstrip())
            assert match, line
            indent, name = len(match['indent']), match['name']
            above = [(depth, parent) for depth, parent in above if depth < indent]
            hosts.append(
                Host(
                    name=name,
                    parent=above[-1][1] if above else None,
                    inventories=dict(
                        _inventory(item)
                        for item in re.split(', *', match['inventories'] or '')
                        if item
                    ),
                    traits=tuple((match['traits'] or '').split()),
                    aggregates=tuple(filter(None, (match['aggs'] or '').split(','))),
                )
            )
            above.append((indent, name))
        return cls(tuple(hosts))

    def claimed(self, *consumers: Consumer) -> 'World':
        """Return the world with more consumers, whose allocations increase the usage."""
        more = claimed_by(consumers)
        hosts = (
            dataclasses.replace(
                host,
                inventories={
                    name: {**values, 'used': values['used'] + more[host.name, name]}
                    for name, values in host.inventories.items()
                },
            )
            for host in self.hosts
        )
        return World(tuple(hosts), (*self.consumers, *consumers))

    @property
    def other_usage(self) -> dict[tuple[str, str], int]:
        """Return the usage that no consumer of the world explains, by provider and class."""
        claimed = claimed_by(self.consumers)
        return {
            key: used
            for host in self.hosts
            for name, values in host.inventories.items()
            if (used := values['used'] - claimed[(key := (host.name, name))])
        }

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """Return the name of each provider, by UUID."""
        return {host.uuid: host.name for host in self.hosts}

    @functools.cached_property
    def ids(self) -> request.Ids:
        """Return an ID for each name. The IDs of providers and aggregates begin with 1."""
        number = {host.name: n for n, host in enumerate(self.hosts, 1)}
        root: dict[str, str] = {}
        for host in self.hosts:
            root[host.name] = root[host.parent] if host.parent else host.name
        used = {aggregate for host in self.hosts for aggregate in host.aggregates}
        traits = {t for host in self.hosts for t in host.traits} | {*EXISTING_TRAITS, 'SHARE'}
        classes = {name for host in self.hosts for name in host.inventories}
        custom = sorted(classes.difference(os_resource_classes.STANDARDS))
        return request.Ids(
            classes={name: n for n, name in enumerate((*os_resource_classes.STANDARDS, *custom))},
            traits={trait(name): n for n, name in enumerate(sorted(traits), 1)},
            aggregates={uuid_of(name): n for n, name in enumerate(sorted(used), 1)},
            roots={uuid_of(name): number[root[name]] for name in number},
        )

    @functools.cached_property
    def providers(self) -> tuple[model.Provider, ...]:
        """Return the providers in the form in which `pages` reads them."""
        ids, number = self.ids, {host.name: n for n, host in enumerate(self.hosts, 1)}
        return tuple(
            model.Provider(
                id=number[host.name],
                uuid=host.uuid,
                root_id=ids.roots[host.uuid],
                parent_id=number.get(host.parent or ''),
                traits=frozenset(ids.traits[trait(t)] for t in host.traits),
                aggregates=frozenset(ids.aggregates[uuid_of(a)] for a in host.aggregates),
                inventories={
                    ids.classes[name]: model.ProviderInventory(ids.classes[name], **values)
                    for name, values in host.inventories.items()
                },
            )
            for host in self.hosts
        )

    @property
    def sharing_id(self) -> int:
        return self.ids.traits[os_traits.MISC_SHARES_VIA_AGGREGATE]

    @functools.cached_property
    def anchors(self) -> tuple[model.Anchor, ...]:
        """Return all anchors, in the order of the drawing."""
        anchors = []
        trees: dict[int, list[model.Provider]] = {}
        for provider in self.providers:
            trees.setdefault(provider.root_id, []).append(provider)
        sharing_providers = [p for p in self.providers if self.sharing_id in p.traits]
        for root in self.providers:
            if root.parent_id is not None:
                continue
            tree = tuple(trees[root.id])
            aggregates = frozenset().union(*(p.aggregates for p in tree))
            sharing = tuple(
                p for p in sharing_providers if p.root_id != root.id and aggregates & p.aggregates
            )
            roots = {p.root_id for p in sharing}
            sharing_trees = tuple(p for id_ in sorted(roots) for p in trees[id_])
            anchors.append(model.Anchor(root, tree, sharing, sharing_trees))
        return tuple(anchors)

    def behind(self, trees: int, **values: Any) -> 'World':
        """Return the world with trees before its own, by default without inventories.

        The database selects the trees of all pages that follow a page without candidates.

        :param values: attributes of the hosts of these trees
        """
        empty = (Host(f'EMPTY{number}', **values) for number in range(trees))
        return dataclasses.replace(self, hosts=(*empty, *self.hosts))

    def query(self, text: str) -> str:
        """Return the query string for a query string with short names.

        Names of aggregates and providers are replaced with UUIDs, even if they do not exist.
        """
        items = []
        for item in text.split('&'):
            key, _, value = item.partition('=')
            kind = re.match('resources|required|root_required|member_of|in_tree|', key).group()
            items.append((key, _LONG_FORMS[kind](value)))
        return parse.urlencode(items)

    def parse(self, text: str, version: Version = NEWEST) -> model.Query[int]:
        """Parse a query string with short names."""
        pairs = parse.parse_qsl(self.query(text), keep_blank_values=True)
        return request.with_ids(request.parse(pairs, version), self.ids)

    def unbind(self, query: model.Query[int]) -> model.Query[str]:
        """Return a query with names instead of IDs."""
        ids = self.ids
        classes = {id_: name for name, id_ in ids.classes.items()}
        traits = {id_: name for name, id_ in ids.traits.items()}
        aggregates = {id_: name for name, id_ in ids.aggregates.items()}
        roots = {id_: name for name, id_ in ids.roots.items()}

        def named(ids: Iterable[int], by_id: Mapping[int, str]) -> frozenset[str]:
            return frozenset(by_id.get(id_, uuid_of('MISSING')) for id_ in ids)

        return dataclasses.replace(
            query,
            groups=tuple(
                dataclasses.replace(
                    group,
                    amounts=tuple((classes[id_], amount) for id_, amount in group.amounts),
                    required=tuple(named(any_set, traits) for any_set in group.required),
                    forbidden=named(group.forbidden, traits),
                    member_of=tuple(named(any_set, aggregates) for any_set in group.member_of),
                    forbidden_aggregates=named(group.forbidden_aggregates, aggregates),
                    in_tree=None
                    if group.in_tree is None
                    else roots.get(group.in_tree, uuid_of('MISSING')),
                )
                for group in query.groups
            ),
            root_required=named(query.root_required, traits),
            root_forbidden=named(query.root_forbidden, traits),
        )

    def solve(
        self, query: model.Query[int], *args: Any, find: Find | None = None
    ) -> list[model.Candidate]:
        """Return all candidates that the solver finds in this world.

        :param args: the other arguments of `solver.bindings`
        :param find: yields the bindings of an anchor, in place of the solver
        """
        prepared = model.PreparedQuery.of(query, one_per_tree=not query.nested)
        sharing = {p.id for p in self.providers if self.sharing_id in p.traits}
        found: dict[object, model.Candidate] = {}
        for anchor in self.anchors:
            for binding in find(anchor) if find else solver.bindings(prepared, anchor, *args):
                # Several anchors can find a candidate that uses only sharing providers.
                key = binding if sharing.issuperset(binding) else (anchor.root.id, binding)
                found.setdefault(key, model.Candidate(anchor.root.id, binding))
        return list(found.values())

    def with_names(
        self, query: model.Query[int], candidates: Iterable[model.Candidate]
    ) -> Candidates:
        """Return candidates in the form of `expected`, with mappings."""
        class_names = {id_: SHORT_CLASSES.get(n, n) for n, id_ in self.ids.classes.items()}
        slots = model.slots_of(query)
        found: Candidates = Counter()
        for _, binding in candidates:
            amounts: Counter[tuple[str, str]] = Counter()
            mappings: dict[str, set[str]] = {}
            for slot, id_ in zip(slots, binding, strict=True):
                name = self.hosts[id_ - 1].name
                mappings.setdefault(slot.group.suffix, set()).add(name)
                for class_id, amount in slot.amounts:
                    amounts[name, class_names[class_id]] += amount
            found[
                frozenset((*key, amount) for key, amount in amounts.items()),
                frozenset((suffix, frozenset(names)) for suffix, names in mappings.items()),
            ] += 1
        return found

    def from_body(self, body: Mapping[str, Any]) -> Candidates:
        """Return the candidates of a response in the form of `expected`."""
        found: Candidates = Counter()
        for element in body['allocation_requests']:
            allocations = element['allocations']
            if isinstance(allocations, list):
                allocations = {a['resource_provider']['uuid']: a for a in allocations}
            mappings = element.get('mappings')
            assert all(one['resources'] for one in allocations.values()), element
            found[
                frozenset(
                    (self.names[uuid_], SHORT_CLASSES.get(name, name), amount)
                    for uuid_, allocation in allocations.items()
                    for name, amount in allocation['resources'].items()
                ),
                None
                if mappings is None
                else frozenset(
                    (suffix, frozenset(self.names[uuid_] for uuid_ in uuids))
                    for suffix, uuids in mappings.items()
                ),
            ] += 1
        return found


def claimed_by(consumers: Iterable[Consumer]) -> Counter[tuple[str, str]]:
    """Return the sums of allocations by provider name and resource class."""
    sums: Counter[tuple[str, str]] = Counter()
    for consumer in consumers:
        for provider, amounts in consumer.allocations.items():
            sums.update({(provider, name): amount for name, amount in amounts.items()})
    return sums


def _inventory(item: str) -> tuple[str, dict[str, Any]]:
    short, _, text = item.strip().partition(':')
    words = text.split()
    if len(words) == 1:
        words.insert(0, 'total')
    given = {
        key: float(n) if '.' in n else int(n)
        for key, n in zip(words[::2], words[1::2], strict=True)
    }
    return CLASSES.get(short, short), {**_DEFAULTS, **given}


def _long_resources(value: str) -> str:
    pairs = (item.partition(':') for item in value.split(','))
    return ','.join(f'{CLASSES.get(short, short)}:{amount}' for short, _, amount in pairs)


def _long_list(value: str, long: Any) -> str:
    prefix, items = re.match('(!?in:|)(.*)$', value).groups()
    pairs = (re.match('(!*)(.*)$', item).groups() for item in items.split(','))
    return prefix + ','.join(marks + long(name) for marks, name in pairs)


_LONG_FORMS = {
    'resources': _long_resources,
    'required': lambda value: _long_list(value, trait),
    'root_required': lambda value: _long_list(value, trait),
    'member_of': lambda value: _long_list(value, uuid_of),
    'in_tree': uuid_of,
    '': lambda value: value,
}


def expected(text: str) -> Candidates:
    """Parse candidates that are separated by semicolons: `CN{V:2} K{VGPU:1} (''=CN 1=K)`.

    Either all candidates have mappings, or no candidate has mappings.
    """
    found: Candidates = Counter()
    for element in filter(None, (part.strip() for part in text.split(';'))):
        amounts, _, mappings = element.partition('(')
        found[
            frozenset(
                (name, *_amount(item))
                for name, items in re.findall(r'(\w+)\{([^}]*)\}', amounts)
                for item in items.split(',')
            ),
            frozenset(_mapping(item) for item in mappings.rstrip(')').split())
            if mappings
            else None,
        ] += 1
    return found


def _amount(text: str) -> tuple[str, int]:
    name, _, amount = text.strip().partition(':')
    return name, int(amount)


def _mapping(text: str) -> tuple[str, frozenset[str]]:
    suffix, _, names = text.partition('=')
    return suffix.strip("'"), frozenset(names.split('+'))


def without_mappings(found: Candidates) -> Candidates:
    """Return the candidates without mappings. Equal candidates are counted."""
    bare: Candidates = Counter()
    for (amounts, _), count in found.items():
        bare[amounts, None] += count
    return bare
