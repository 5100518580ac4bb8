"""Random writes against a model that is simple enough to be right by inspection."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
import uuid

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional.races import arena, audit

CLASSES = ('VCPU', 'MEMORY_MB', 'CUSTOM_STATEFUL')
CONSUMERS = 4
SETTINGS = hypothesis.settings(
    max_examples=20,
    stateful_step_count=30,
    derandomize=True,
    # Making a failure small takes minutes; add Phase.shrink where one is looked into.
    phases=[hypothesis.Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)

pick = st.integers(min_value=0, max_value=1000)
records = st.fixed_dictionaries(
    {
        'total': st.integers(min_value=3, max_value=12),
        'reserved': st.integers(min_value=0, max_value=2),
        'min_unit': st.sampled_from([1, 1, 1, 2]),
        'max_unit': st.sampled_from([12, 12, 3]),
        'step_size': st.sampled_from([1, 1, 1, 2]),
        'allocation_ratio': st.sampled_from([1.0, 1.5, 2.0]),
    }
)
inventories = st.fixed_dictionaries(
    {'VCPU': records}, optional=dict.fromkeys(CLASSES[1:], records)
) | st.dictionaries(st.sampled_from(CLASSES), records, max_size=3)
amount = st.integers(min_value=1, max_value=4)
amounts = st.just({'VCPU': 1}) | st.dictionaries(
    st.sampled_from(CLASSES), amount, min_size=1, max_size=2
)
# By position of the provider.
position = st.integers(min_value=0, max_value=2)
some_shares = st.dictionaries(position, amounts, min_size=1, max_size=2)
shares = some_shares | some_shares | some_shares | st.just({})


@dataclass
class Host:
    parent: str | None
    stock: dict[str, dict[str, Any]] = field(default_factory=dict)


class World:
    """What should be the case."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        # By consumer, then provider and class.
        self.held: dict[str, dict[tuple[str, str], int]] = {}
        self.generations: dict[str, int] = {}

    def used(self) -> dict[tuple[str, str], int]:
        sums: dict[tuple[str, str], int] = defaultdict(int)
        for own in self.held.values():
            for spot, amount in own.items():
                sums[spot] += amount
        return sums

    def descendants(self, host: str) -> set[str]:
        below = {host}
        while more := {uuid for uuid, it in self.hosts.items() if it.parent in below} - below:
            below |= more
        return below

    def root(self, host: str) -> str:
        parent = self.hosts[host].parent
        return host if parent is None else self.root(parent)

    def grants(
        self,
        wanted: Mapping[str, Mapping[tuple[str, str], int]],
        stock: Mapping[tuple[str, str], Mapping[str, Any]],
    ) -> bool:
        before, after = self.used(), self.used()
        for consumer, own in wanted.items():
            for spot, amount in self.held.get(consumer, {}).items():
                after[spot] -= amount
            for spot, amount in own.items():
                after[spot] += amount
        for own in wanted.values():
            for spot, amount in own.items():
                record = stock.get(spot)
                if record is None or not record['min_unit'] <= amount <= record['max_unit']:
                    return False
                if amount % record['step_size']:
                    return False
                capacity = (record['total'] - record['reserved']) * record['allocation_ratio']
                if after[spot] > capacity and after[spot] > before[spot]:
                    return False
        return True

    def stock(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        return {
            (uuid, name): record
            for uuid, it in self.hosts.items()
            for name, record in it.stock.items()
        }

    def hold(self, wanted: Mapping[str, Mapping[tuple[str, str], int]]) -> None:
        for consumer, own in wanted.items():
            if own:
                self.held[consumer] = dict(own)
                self.generations[consumer] = self.generations.get(consumer, 0) + 1
            else:
                self.held.pop(consumer, None)
                self.generations.pop(consumer, None)


class Writes(stateful.RuleBasedStateMachine):
    """Each rule sends one request, and knows the status that has to come back."""

    def __init__(self, service: arena.Arena):
        super().__init__()
        self.service = service
        self.world = World()
        self.consumers = [str(uuid.uuid4()) for _ in range(CONSUMERS)]

    def expect(self, status: int, method: str, path: str, body: Any = None, **kwargs: Any) -> None:
        answer = self.service.ask(method, path, body, **kwargs)
        assert answer.status == status, (status, method, path, body, answer)

    def host(self, number: int) -> str:
        return list(self.world.hosts)[number % len(self.world.hosts)]

    def generation(self, host: str) -> int:
        return int(self.service.provider(host)['generation'])

    has_hosts = stateful.precondition(lambda self: self.world.hosts)

    # Providers

    @stateful.initialize()
    def begin(self) -> None:
        for _ in range(3):
            self.create_host(None)
            record = {
                'total': 8, 'reserved': 0, 'min_unit': 1, 'max_unit': 12,
                'step_size': 1, 'allocation_ratio': 1.0,
            }  # fmt: skip
            self.set_inventories(len(self.world.hosts) - 1, dict.fromkeys(CLASSES, record), 0)

    @stateful.rule(parent=st.none() | pick)
    @stateful.precondition(lambda self: len(self.world.hosts) < 5)
    def create_host(self, parent: int | None) -> None:
        above = self.host(parent) if parent is not None and self.world.hosts else None
        own = str(uuid.uuid4())
        body = {'uuid': own, 'name': own}
        if above:
            body['parent_provider_uuid'] = above
        self.expect(200, 'POST', '/resource_providers', body)
        self.world.hosts[own] = Host(above)

    @has_hosts
    @stateful.rule(number=pick, parent=st.none() | pick)
    def move_host(self, number: int, parent: int | None) -> None:
        own = self.host(number)
        above = None if parent is None else self.host(parent)
        loop = above in self.world.descendants(own)
        body = {'name': own, 'parent_provider_uuid': above}
        self.expect(400 if loop else 200, 'PUT', f'/resource_providers/{own}', body)
        if not loop:
            self.world.hosts[own].parent = above

    @has_hosts
    @stateful.rule(number=pick)
    def delete_host(self, number: int) -> None:
        own = self.host(number)
        used = any(spot[0] == own for spot in self.world.used())
        busy = used or self.world.descendants(own) != {own}
        self.expect(409 if busy else 204, 'DELETE', f'/resource_providers/{own}')
        if not busy:
            del self.world.hosts[own]

    # Inventories

    @has_hosts
    @stateful.rule(number=pick, stock=inventories, stale=st.sampled_from([0, 0, 0, 1]))
    def set_inventories(self, number: int, stock: dict[str, Any], stale: int) -> None:
        own = self.host(number)
        body = {
            'resource_provider_generation': self.generation(own) + stale,
            'inventories': stock,
        }
        in_use = {name for host, name in self.world.used() if host == own} - stock.keys()
        refused = bool(stale or in_use)
        path = f'/resource_providers/{own}/inventories'
        self.expect(409 if refused else 200, 'PUT', path, body)
        if not refused:
            self.world.hosts[own].stock = stock

    @has_hosts
    @stateful.rule(number=pick, name=st.sampled_from(CLASSES))
    def delete_inventory(self, number: int, name: str) -> None:
        own = self.host(number)
        stock = self.world.hosts[own].stock = dict(self.world.hosts[own].stock)
        status = 404 if name not in stock else 409 if self.world.used().get((own, name)) else 204
        self.expect(status, 'DELETE', f'/resource_providers/{own}/inventories/{name}')
        if status == 204:
            del stock[name]

    # Claims

    def wanted(self, asked: Mapping[int, Mapping[str, int]]) -> dict[tuple[str, str], int]:
        """By provider and class; several positions may mean one provider, the last one counts."""
        by_host = {self.host(number): own for number, own in sorted(asked.items())}
        return {(host, name): n for host, own in by_host.items() for name, n in own.items()}

    def body(self, consumer: str, own: Mapping[tuple[str, str], int], stale: int) -> dict[str, Any]:
        allocations: dict[str, Any] = {}
        for (host, name), amount in own.items():
            allocations.setdefault(host, {'resources': {}})['resources'][name] = amount
        generation = self.world.generations.get(consumer)
        return {
            'allocations': allocations,
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': (generation or 0) + 1 if stale else generation,
            'consumer_type': 'INSTANCE',
        }

    @has_hosts
    @stateful.rule(
        number=pick, asked=shares, stale=st.sampled_from([0, 0, 0, 1]), old=st.booleans()
    )
    def claim(self, number: int, asked: Mapping[int, Any], stale: int, old: bool) -> None:
        consumer = self.consumers[number % CONSUMERS]
        own = self.wanted(asked)
        body = self.body(consumer, own, stale)
        if old:
            stale = 0
            del body['consumer_generation'], body['consumer_type']
        if old and not own:
            return  # such a body is not valid before 1.28
        granted = not stale and self.world.grants({consumer: own}, self.world.stock())
        path = f'/allocations/{consumer}'
        self.expect(204 if granted else 409, 'PUT', path, body, version='1.27' if old else '1.39')
        if granted:
            self.world.hold({consumer: own})

    @has_hosts
    @stateful.rule(all_asked=st.lists(shares, min_size=2, max_size=3))
    def claim_for_several(self, all_asked: list[Mapping[int, Any]]) -> None:
        wanted = {
            self.consumers[number]: self.wanted(asked) for number, asked in enumerate(all_asked)
        }
        body = {consumer: self.body(consumer, own, 0) for consumer, own in wanted.items()}
        granted = self.world.grants(wanted, self.world.stock())
        self.expect(204 if granted else 409, 'POST', '/allocations', body)
        if granted:
            self.world.hold(wanted)

    @has_hosts
    @stateful.rule(number=pick, asked=some_shares)
    def claim_more(self, number: int, asked: Mapping[int, Any]) -> None:
        self.claim(number, asked, 0, False)

    @has_hosts
    @stateful.rule(asked=st.lists(amounts, min_size=2, max_size=4))
    def fill(self, asked: list[dict[str, int]]) -> None:
        for number, own in enumerate(asked):
            self.claim(number, {number: own}, 0, bool(number % 2))

    @stateful.rule(number=pick)
    def release(self, number: int) -> None:
        among = sorted(self.world.held) if number % 5 else self.consumers
        consumer = (among or self.consumers)[number % 4 % len(among or self.consumers)]
        held = consumer in self.world.held
        self.expect(204 if held else 404, 'DELETE', f'/allocations/{consumer}')
        self.world.hold({consumer: {}})

    # Reshaping

    @has_hosts
    @stateful.rule(
        numbers=st.permutations(range(3)), name=st.just('VCPU') | st.sampled_from(CLASSES)
    )
    def reshape(self, numbers: list[int], name: str) -> None:
        """Move all inventory of a class, and what is held of it, from one provider to another."""
        source, target = self.host(numbers[0]), self.host(numbers[1])
        if source == target or name not in self.world.hosts[source].stock:
            return
        new = {own: dict(self.world.hosts[own].stock) for own in (source, target)}
        new[target][name] = new[source].pop(name)
        wanted: dict[str, dict[tuple[str, str], int]] = {}
        for consumer, held in self.world.held.items():
            if (source, name) in held:
                moved = dict(held)
                taken = moved.pop((source, name)) + moved.get((target, name), 0)
                wanted[consumer] = moved | {(target, name): taken}
        stock = self.world.stock()
        del stock[source, name]
        stock[target, name] = new[target][name]
        granted = self.world.grants(wanted, stock)
        body = {
            'inventories': {
                own: {'resource_provider_generation': self.generation(own), 'inventories': records}
                for own, records in new.items()
            },
            'allocations': {
                consumer: self.body(consumer, own, 0) for consumer, own in wanted.items()
            },
        }
        self.expect(204 if granted else 409, 'POST', '/reshaper', body)
        if granted:
            for own, records in new.items():
                self.world.hosts[own].stock = records
            self.world.hold(wanted)

    # What is there

    @stateful.invariant()
    def agrees(self) -> None:
        assert audit.problems(db_api.get_placement_engine(), may_exceed=True) == []
        with db_api.get_placement_engine().connect() as conn:
            assert self.trees_of(conn) == {
                own: (host.parent, self.world.root(own)) for own, host in self.world.hosts.items()
            }
            assert self.held_in(conn) == self.world.held
            assert self.stock_in(conn) == self.world.stock()
            assert self.generations_in(conn) == self.world.generations

    def trees_of(self, conn: sa.Connection) -> dict[str, tuple[str | None, str | None]]:
        rows = conn.execute(sa.select(models.resource_providers)).all()
        names: dict[int | None, str | None] = {row.id: row.uuid for row in rows}
        names[None] = None
        return {
            row.uuid: (names[row.parent_provider_id], names[row.root_provider_id])
            for row in rows
            if row.uuid in self.world.hosts
        }

    def held_in(self, conn: sa.Connection) -> dict[str, dict[tuple[str, str], int]]:
        held, hosts, classes = (
            models.allocations, models.resource_providers, models.resource_classes,
        )  # fmt: skip
        rows = conn.execute(
            sa.select(held.c.consumer_id, hosts.c.uuid, classes.c.name, held.c.used)
            .join(hosts, hosts.c.id == held.c.resource_provider_id)
            .join(classes, classes.c.id == held.c.resource_class_id)
            .where(held.c.consumer_id.in_(self.consumers))
        )
        found: dict[str, dict[tuple[str, str], int]] = {}
        for consumer, host, name, used in rows:
            found.setdefault(consumer, {})[host, name] = used
        return found

    def stock_in(self, conn: sa.Connection) -> dict[tuple[str, str], dict[str, Any]]:
        stock, hosts, classes = (
            models.inventories, models.resource_providers, models.resource_classes,
        )  # fmt: skip
        columns = [stock.c[name] for name in RECORD]
        rows = conn.execute(
            sa.select(hosts.c.uuid, classes.c.name, *columns)
            .join(hosts, hosts.c.id == stock.c.resource_provider_id)
            .join(classes, classes.c.id == stock.c.resource_class_id)
            .where(hosts.c.uuid.in_(list(self.world.hosts)))
        )
        return {(row[0], row[1]): dict(zip(RECORD, row[2:], strict=True)) for row in rows}

    def generations_in(self, conn: sa.Connection) -> dict[str, int]:
        consumers = models.consumers
        rows = conn.execute(
            sa.select(consumers.c.uuid, consumers.c.generation).where(
                consumers.c.uuid.in_(self.consumers)
            )
        )
        return dict(rows.tuples().all())


RECORD = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')


class StatefulTest(arena.Arena):
    def test_random_writes(self):
        self.sure('PUT', '/resource_classes/CUSTOM_STATEFUL')
        stateful.run_state_machine_as_test(lambda: Writes(self), settings=SETTINGS)
