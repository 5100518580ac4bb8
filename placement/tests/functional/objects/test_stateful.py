"""Random writes, compared with a model that is simple enough to verify by reading."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
import uuid

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from placement import db_api
from placement.tests.functional import base
from placement.tests.functional.races import audit, testcase
from placement.tests.properties import REPEATABLE, examples

CLASSES = ('VCPU', 'MEMORY_MB', 'CUSTOM_STATEFUL')
FIELDS = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')
CONSUMERS = 4
SETTINGS = hypothesis.settings(REPEATABLE, max_examples=examples(12), stateful_step_count=30)

# The UUID of a provider and the name of a resource class.
Key = tuple[str, str]
Amounts = Mapping[Key, int]

any_number = st.integers(min_value=0, max_value=1000)
any_inventory = st.fixed_dictionaries(
    {
        'total': st.integers(min_value=3, max_value=12),
        'reserved': st.integers(min_value=0, max_value=2),
        'min_unit': st.sampled_from([1, 1, 1, 2]),
        'max_unit': st.sampled_from([12, 12, 3]),
        'step_size': st.sampled_from([1, 1, 1, 2]),
        'allocation_ratio': st.sampled_from([1.0, 1.5, 2.0]),
    }
)
any_inventories = st.fixed_dictionaries(
    {'VCPU': any_inventory}, optional=dict.fromkeys(CLASSES[1:], any_inventory)
) | st.dictionaries(st.sampled_from(CLASSES), any_inventory, max_size=3)
any_resources = st.just({'VCPU': 1}) | st.dictionaries(
    st.sampled_from(CLASSES), st.integers(min_value=1, max_value=4), min_size=1, max_size=2
)
# Resources by position of the provider.
some_allocations = st.dictionaries(
    st.integers(min_value=0, max_value=2), any_resources, min_size=1, max_size=2
)
any_allocations = some_allocations | some_allocations | some_allocations | st.just({})


@dataclass
class Provider:
    parent: str | None
    inventories: dict[str, dict[str, Any]] = field(default_factory=dict)


class Model:
    """The expected content of the database."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        # By consumer, then by provider and class.
        self.allocations: dict[str, dict[Key, int]] = {}
        self.generations: dict[str, int] = {}

    def usages(self) -> Counter[Key]:
        return sum(map(Counter, self.allocations.values()), Counter())

    def subtree(self, provider: str) -> set[str]:
        subtree = {provider}
        while more := {u for u, p in self.providers.items() if p.parent in subtree} - subtree:
            subtree |= more
        return subtree

    def root(self, provider: str) -> str:
        parent = self.providers[provider].parent
        return provider if parent is None else self.root(parent)

    def grants(
        self, requested: Mapping[str, Amounts], inventories: Mapping[Key, Mapping[str, Any]]
    ) -> bool:
        """Return whether consumers can have the requested amounts instead of their present ones."""
        before, after = self.usages(), self.usages()
        for consumer, amounts in requested.items():
            after.subtract(self.allocations.get(consumer, {}))
            after.update(amounts)
        return all(
            key in inventories and fits(amount, inventories[key], before[key], after[key])
            for amounts in requested.values()
            for key, amount in amounts.items()
        )

    def inventories(self) -> dict[Key, Mapping[str, Any]]:
        return {
            (uuid, name): inventory
            for uuid, provider in self.providers.items()
            for name, inventory in provider.inventories.items()
        }

    def replace(self, requested: Mapping[str, Amounts]) -> None:
        for consumer, amounts in requested.items():
            if amounts:
                self.allocations[consumer] = dict(amounts)
                self.generations[consumer] = self.generations.get(consumer, 0) + 1
            else:
                self.allocations.pop(consumer, None)
                self.generations.pop(consumer, None)


def fits(amount: int, inventory: Mapping[str, Any], before: int, after: int) -> bool:
    """Return whether an amount can be claimed that changes the usage."""
    capacity = (inventory['total'] - inventory['reserved']) * inventory['allocation_ratio']
    return bool(
        inventory['min_unit'] <= amount <= inventory['max_unit']
        and amount % inventory['step_size'] == 0
        and (after <= capacity or after <= before)
    )


class Writes(stateful.RuleBasedStateMachine):
    """Each rule sends one request, and compares its status with the model."""

    def __init__(self, service: testcase.RaceTestCase):
        super().__init__()
        self.service = service
        self.model = Model()
        self.consumers = [str(uuid.uuid4()) for _ in range(CONSUMERS)]

    def expect(self, status: int, method: str, path: str, body: Any = None, **kwargs: Any) -> None:
        response = self.service.send(method, path, body, **kwargs)
        assert response.status == status, (status, method, path, body, response)

    def provider(self, number: int) -> str:
        return list(self.model.providers)[number % len(self.model.providers)]

    def generation(self, provider: str) -> int:
        return int(self.service.provider(provider)['generation'])

    has_providers = stateful.precondition(lambda self: self.model.providers)

    # Providers

    @stateful.initialize()
    def begin(self) -> None:
        for _ in range(3):
            self.create_provider(None)
            inventory = {
                'total': 8, 'reserved': 0, 'min_unit': 1, 'max_unit': 12,
                'step_size': 1, 'allocation_ratio': 1.0,
            }  # fmt: skip
            last = len(self.model.providers) - 1
            self.set_inventories(last, dict.fromkeys(CLASSES, inventory), 0)

    @stateful.rule(parent=st.none() | any_number)
    @stateful.precondition(lambda self: len(self.model.providers) < 5)
    def create_provider(self, parent: int | None) -> None:
        has_parent = parent is not None and self.model.providers
        parent_uuid = self.provider(parent) if has_parent else None
        own = str(uuid.uuid4())
        body = {'uuid': own, 'name': own}
        if parent_uuid:
            body['parent_provider_uuid'] = parent_uuid
        self.expect(200, 'POST', '/resource_providers', body)
        self.model.providers[own] = Provider(parent_uuid)

    @has_providers
    @stateful.rule(number=any_number, parent=st.none() | any_number)
    def move_provider(self, number: int, parent: int | None) -> None:
        own = self.provider(number)
        parent_uuid = None if parent is None else self.provider(parent)
        loop = parent_uuid in self.model.subtree(own)
        body = {'name': own, 'parent_provider_uuid': parent_uuid}
        self.expect(400 if loop else 200, 'PUT', f'/resource_providers/{own}', body)
        if not loop:
            self.model.providers[own].parent = parent_uuid

    @has_providers
    @stateful.rule(number=any_number)
    def delete_provider(self, number: int) -> None:
        own = self.provider(number)
        used = any(key[0] == own for key in self.model.usages())
        in_use = used or self.model.subtree(own) != {own}
        self.expect(409 if in_use else 204, 'DELETE', f'/resource_providers/{own}')
        if not in_use:
            del self.model.providers[own]

    # Inventories

    @has_providers
    @stateful.rule(
        number=any_number, inventories=any_inventories, stale=st.sampled_from([0, 0, 0, 1])
    )
    def set_inventories(self, number: int, inventories: dict[str, Any], stale: int) -> None:
        own = self.provider(number)
        body = {
            'resource_provider_generation': self.generation(own) + stale,
            'inventories': inventories,
        }
        used = {name for provider, name in self.model.usages() if provider == own}
        refused = bool(stale or used - inventories.keys())
        path = f'/resource_providers/{own}/inventories'
        self.expect(409 if refused else 200, 'PUT', path, body)
        if not refused:
            self.model.providers[own].inventories = inventories

    @has_providers
    @stateful.rule(number=any_number, name=st.sampled_from(CLASSES))
    def delete_inventory(self, number: int, name: str) -> None:
        own = self.provider(number)
        inventories = dict(self.model.providers[own].inventories)
        used = self.model.usages().get((own, name))
        status = 404 if name not in inventories else 409 if used else 204
        self.expect(status, 'DELETE', f'/resource_providers/{own}/inventories/{name}')
        if status == 204:
            del inventories[name]
        self.model.providers[own].inventories = inventories

    # Claims

    def amounts(self, allocations: Mapping[int, Mapping[str, int]]) -> dict[Key, int]:
        """Return amounts by provider and class.

        Several positions may refer to one provider, and then the last one replaces the others.
        """
        by_provider = {self.provider(n): resources for n, resources in sorted(allocations.items())}
        return {
            (provider, name): amount
            for provider, resources in by_provider.items()
            for name, amount in resources.items()
        }

    def body(self, consumer: str, amounts: Amounts, stale: int) -> dict[str, Any]:
        allocations: dict[str, dict[str, int]] = {}
        for (provider, name), amount in amounts.items():
            allocations.setdefault(provider, {})[name] = amount
        generation = self.model.generations.get(consumer)
        return base.claim(allocations, (generation or 0) + 1 if stale else generation)

    @has_providers
    @stateful.rule(
        number=any_number,
        allocations=any_allocations,
        stale=st.sampled_from([0, 0, 0, 1]),
        old=st.booleans(),
    )
    def claim(self, number: int, allocations: Mapping[int, Any], stale: int, old: bool) -> None:
        consumer = self.consumers[number % CONSUMERS]
        amounts = self.amounts(allocations)
        body = self.body(consumer, amounts, stale)
        if old:
            stale = 0
            del body['consumer_generation'], body['consumer_type']
        if old and not amounts:
            return  # before 1.28 such a body is not valid
        granted = not stale and self.model.grants({consumer: amounts}, self.model.inventories())
        path = f'/allocations/{consumer}'
        self.expect(204 if granted else 409, 'PUT', path, body, version='1.27' if old else 'latest')
        if granted:
            self.model.replace({consumer: amounts})

    @has_providers
    @stateful.rule(claims=st.lists(any_allocations, min_size=2, max_size=3))
    def claim_for_several_consumers(self, claims: list[Mapping[int, Any]]) -> None:
        requested = {
            self.consumers[number]: self.amounts(allocations)
            for number, allocations in enumerate(claims)
        }
        body = {consumer: self.body(consumer, own, 0) for consumer, own in requested.items()}
        granted = self.model.grants(requested, self.model.inventories())
        self.expect(204 if granted else 409, 'POST', '/allocations', body)
        if granted:
            self.model.replace(requested)

    @has_providers
    @stateful.rule(claims=st.lists(any_resources, min_size=1, max_size=4))
    def claim_for_one_consumer_after_another(self, claims: list[dict[str, int]]) -> None:
        for number, resources in enumerate(claims):
            self.claim(number, {number: resources}, 0, bool(number % 2))

    @stateful.rule(number=any_number)
    def release(self, number: int) -> None:
        consumers = sorted(self.model.allocations) if number % 5 else self.consumers
        consumers = consumers or self.consumers
        consumer = consumers[number % 4 % len(consumers)]
        existing = consumer in self.model.allocations
        self.expect(204 if existing else 404, 'DELETE', f'/allocations/{consumer}')
        self.model.replace({consumer: {}})

    # Reshaping

    @has_providers
    @stateful.rule(
        numbers=st.permutations(range(3)), name=st.just('VCPU') | st.sampled_from(CLASSES)
    )
    def reshape(self, numbers: list[int], name: str) -> None:
        """Move an inventory and all allocations against it from one provider to another."""
        source, target = self.provider(numbers[0]), self.provider(numbers[1])
        if source == target or name not in self.model.providers[source].inventories:
            return
        new = {own: dict(self.model.providers[own].inventories) for own in (source, target)}
        new[target][name] = new[source].pop(name)
        requested = self.moved_allocations(source, target, name)
        inventories = self.model.inventories()
        del inventories[source, name]
        inventories[target, name] = new[target][name]
        granted = self.model.grants(requested, inventories)
        body = {
            'inventories': {
                own: {'resource_provider_generation': self.generation(own), 'inventories': replaced}
                for own, replaced in new.items()
            },
            'allocations': {
                consumer: self.body(consumer, amounts, 0) for consumer, amounts in requested.items()
            },
        }
        self.expect(204 if granted else 409, 'POST', '/reshaper', body)
        if granted:
            for own, replaced in new.items():
                self.model.providers[own].inventories = replaced
            self.model.replace(requested)

    def moved_allocations(self, source: str, target: str, name: str) -> dict[str, dict[Key, int]]:
        """Return all allocations of the consumers that have allocations to move."""
        requested: dict[str, dict[Key, int]] = {}
        for consumer, amounts in self.model.allocations.items():
            if (source, name) in amounts:
                others = dict(amounts)
                amount = others.pop((source, name)) + others.get((target, name), 0)
                requested[consumer] = others | {(target, name): amount}
        return requested

    # The database

    @stateful.invariant()
    def agrees(self) -> None:
        with db_api.get_placement_engine().connect() as conn:
            tables = audit.read(conn)
        assert audit.problems_of(tables, may_exceed=True) == []
        rows = audit.visible(tables)
        assert {
            uuid: (parent, root)
            for uuid, _name, _generation, root, parent in rows['resource_providers']
            if uuid in self.model.providers
        } == {
            own: (provider.parent, self.model.root(own))
            for own, provider in self.model.providers.items()
        }
        allocations: dict[str, dict[Key, int]] = {}
        for provider, consumer, name, used in rows['allocations']:
            if consumer in self.consumers:
                allocations.setdefault(consumer, {})[provider, name] = used
        assert allocations == self.model.allocations
        assert {
            (provider, name): dict(zip(FIELDS, values, strict=True))
            for provider, name, *values in rows['inventories']
            if provider in self.model.providers
        } == self.model.inventories()
        assert {
            row.uuid: row.generation for row in tables['consumers'] if row.uuid in self.consumers
        } == self.model.generations


class StatefulTest(testcase.RaceTestCase):
    def test_random_writes(self):
        self.send_ok('PUT', '/resource_classes/CUSTOM_STATEFUL')
        stateful.run_state_machine_as_test(lambda: Writes(self), settings=SETTINGS)
