"""The number of SQL statements of each request is bounded and does not grow with the data."""

from collections.abc import Callable
from typing import Any, TypeVar
import uuid

from placement.tests.functional import base
from placement.tests.functional.base import claim

SIZES = (1, 2, 4, 8)
Prepared = TypeVar('Prepared')


def new_uuids(count: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(count)]


class StatementBudgetsTest(base.TestCase):
    """Each test sends the same request for different amounts of data."""

    def check(
        self, budget: int, prepare: Callable[[int], Prepared], send: Callable[[Prepared], Any]
    ) -> None:
        """Require that `send` executes the same number of statements for every size.

        :param budget: the maximum number of statements
        :param prepare: creates the data of a size, and returns the argument for `send`
        """
        # The first request creates the project, user and consumer type, and compiles statements.
        first, *others = [prepare(size) for size in SIZES]
        send(first)
        costs = []
        for argument in others:
            with self.counted() as counts:
                send(argument)
            costs.append(counts['all'])
        self.assertEqual(1, len(set(costs)), f'the statements grow with the data: {costs}')
        self.assertLessEqual(costs[0], budget)
        self.assertGreater(costs[0], 0)

    def providers(self, count: int, classes: tuple[str, ...] = ('VCPU', 'MEMORY_MB')) -> list[str]:
        return [self.make_provider(name, dict.fromkeys(classes, 1000)) for name in new_uuids(count)]

    def put_claim(
        self, providers: list[str], consumer: str, generation: int | None, **owner: str
    ) -> None:
        body = claim({rp: {'VCPU': 1, 'MEMORY_MB': 1} for rp in providers}, generation, **owner)
        self.send_ok('PUT', f'/allocations/{consumer}', body)

    def claimed(self, size: int) -> tuple[list[str], str]:
        """Return providers, and a consumer with allocations of all of them."""
        providers, (consumer,) = self.providers(size), new_uuids(1)
        self.put_claim(providers, consumer, None)
        return providers, consumer

    def consumers(self, size: int) -> tuple[list[str], list[str]]:
        """Return providers, and consumers that have allocations of each of them."""
        providers, consumers = self.providers(2), new_uuids(size)
        for consumer in consumers:
            self.put_claim(providers, consumer, None)
        return providers, consumers

    def test_put_allocations_of_a_new_consumer(self):
        def put(providers: list[str], **owner: str) -> None:
            self.put_claim(providers, *new_uuids(1), None, **owner)

        def put_with_new_owner(providers: list[str]) -> None:
            project, user, name = new_uuids(3)
            consumer_type = f'TYPE_{name.replace("-", "").upper()}'
            put(providers, project=project, user=user, consumer_type=consumer_type)

        def put_before_consumer_generations(providers: list[str]) -> None:
            """The client does not state whether the consumer exists, so the consumer is locked."""
            body = claim({rp: {'VCPU': 1, 'MEMORY_MB': 1} for rp in providers})
            del body['consumer_generation'], body['consumer_type']
            self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body, '1.27')

        self.check(5, self.providers, put)
        self.check(9, self.providers, put_with_new_owner)
        self.check(6, self.providers, put_before_consumer_generations)

    def test_put_allocations_of_a_new_consumer_of_one_provider(self):
        (provider,) = self.providers(1)
        self.put_claim([provider], *new_uuids(1), None)
        for project, counted in (
            ('project', {'INSERT': 2, 'UPDATE': 1, 'SELECT': 1, 'all': 4}),
            ('another', {'INSERT': 3, 'UPDATE': 2, 'SELECT': 1, 'all': 6}),
        ):
            with self.subTest(project=project), self.counted() as counts:
                self.put_claim([provider], *new_uuids(1), None, project=project)
            self.assertEqual(counted, dict(counts))

    def test_put_allocations_of_an_existing_consumer(self):
        for project, budget in (('project', 7), ('another', 8)):
            self.check(
                budget, self.claimed, lambda one, p=project: self.put_claim(*one, 1, project=p)
            )

    def test_put_allocations_that_release_nothing(self):
        """A consumer that does not exist is released; only reads are necessary."""
        path = '/allocations/{}'
        self.check(
            2, new_uuids, lambda uuids: self.send_ok('PUT', path.format(uuids[0]), claim({}))
        )

    def test_delete_allocations(self):
        self.check(3, self.claimed, lambda one: self.send_ok('DELETE', f'/allocations/{one[1]}'))

    def test_post_allocations(self):
        providers = self.providers(2)
        allocations = {rp: {'VCPU': 1, 'MEMORY_MB': 2} for rp in providers}

        def claim_for_many(consumers: list[str]) -> None:
            self.send_ok('POST', '/allocations', dict.fromkeys(consumers, claim(allocations)))

        def claim_of_new_projects(projects: list[str]) -> None:
            body = {
                consumer: claim(allocations, project=project)
                for consumer, project in zip(new_uuids(9), ['project', *projects], strict=False)
            }
            self.send_ok('POST', '/allocations', body)

        def move(prepared: tuple[list[str], list[str]]) -> None:
            providers, consumers = prepared
            released = {consumer: claim({}, 1) for consumer in consumers}
            one = claim({rp: {'VCPU': 1} for rp in providers})
            claimed = dict.fromkeys(new_uuids(len(consumers)), one)
            self.send_ok('POST', '/allocations', {**released, **claimed})

        self.check(5, new_uuids, claim_for_many)
        self.check(7, new_uuids, claim_of_new_projects)
        self.check(9, self.consumers, move)

    def test_reshaper(self):
        """The request moves inventories and allocations from roots to children."""

        def prepare(size: int) -> dict[str, Any]:
            inventories, allocations = {}, {}
            for root, consumer in zip(
                self.providers(size, ('VCPU',)), new_uuids(size), strict=True
            ):
                child = self.make_provider(str(uuid.uuid4()), parent=root)
                self.send_ok('PUT', f'/allocations/{consumer}', claim({root: {'VCPU': 2}}))
                inventories[root] = {'resource_provider_generation': 2, 'inventories': {}}
                inventories[child] = {
                    'resource_provider_generation': 0,
                    'inventories': {'VCPU': {'total': 1000}},
                }
                allocations[consumer] = claim({child: {'VCPU': 2}}, 1)
            return {'inventories': inventories, 'allocations': allocations}

        self.check(10, prepare, lambda body: self.send_ok('POST', '/reshaper', body))

    def test_registration_of_a_host(self):
        """The requests of a new compute node, which change tables that have no rows of the host."""
        host, aggregate = new_uuids(2)
        inventories = {name: {'total': 8} for name in ('VCPU', 'MEMORY_MB')}
        with self.counted() as counts:
            self.send_ok('POST', '/resource_providers', {'name': host, 'uuid': host})
        self.assertEqual(2, counts['all'])
        for generation, (budget, kind, value) in enumerate(
            (
                (3, 'inventories', inventories),
                (3, 'traits', ['COMPUTE_NODE', 'HW_CPU_X86_AVX']),
                (4, 'aggregates', [aggregate]),
            )
        ):
            with self.counted() as counts:
                self.put(host, kind, value, generation)
            self.assertEqual(budget, counts['all'], kind)

    def put(self, provider: str, kind: str, value: Any, generation: int) -> None:
        """Replace the inventories, traits or aggregates of a provider."""
        body = {'resource_provider_generation': generation, kind: value}
        self.send_ok('PUT', f'/resource_providers/{provider}/{kind}', body)

    def test_put_inventories_without_a_change(self):
        """Only the generation of the provider changes, also if a ratio has no exact binary form."""
        provider = self.make_provider('host')
        inventories = {
            'VCPU': {'total': 8, 'allocation_ratio': 16.1},
            'MEMORY_MB': {'total': 8, 'allocation_ratio': 0.7},
        }
        for generation in range(2):
            with self.counted() as counts:
                self.put(provider, 'inventories', inventories, generation)
        self.assertEqual({'SELECT': 1, 'UPDATE': 1, 'all': 2}, dict(counts))

    def test_changes_of_a_provider(self):
        """The requests delete, add and keep or change inventories, traits and aggregates."""
        classes, traits = ([f'CUSTOM_{kind}_{n}' for n in range(24)] for kind in ('CLASS', 'TRAIT'))
        for path, names in (('resource_classes', classes), ('traits', traits)):
            for name in names:
                self.send_ok('PUT', f'/{path}/{name}')

        def inventories(names: list[str]) -> dict[str, Any]:
            return {name: {'total': len(names) + n} for n, name in enumerate(names)}

        for budget, kind, names, make in (
            (6, 'inventories', classes, inventories),
            (4, 'traits', traits, list),
            (6, 'aggregates', [], list),
        ):

            def prepare(size: int, kind: str = kind, names: Any = names, make: Any = make) -> Any:
                provider = self.make_provider(str(uuid.uuid4()))
                names = names or new_uuids(3 * size)
                self.put(provider, kind, make(names[: 2 * size]), 0)
                return provider, kind, make(names[size : 3 * size]), 1

            self.check(budget, prepare, lambda one: self.put(*one))

    def test_reparenting_a_subtree(self):
        def prepare(size: int) -> tuple[str, str]:
            top, target = self.providers(2)
            branch = self.make_provider(str(uuid.uuid4()), parent=top)
            for name in new_uuids(size):
                self.make_provider(name, parent=branch)
            return branch, target

        def send(prepared: tuple[str, str]) -> None:
            branch, target = prepared
            body = {'name': str(uuid.uuid4()), 'parent_provider_uuid': target}
            self.send_ok('PUT', f'/resource_providers/{branch}', body)

        self.check(10, prepare, send)

    def test_reads(self):
        (provider,), consumer = self.claimed(1)
        own = f'/resource_providers/{provider}'
        filtered = '/resource_providers?resources=VCPU:1,MEMORY_MB:1&required=HW_CPU_X86_AVX'
        ones = ('', '/inventories', '/inventories/VCPU', '/usages', '/aggregates', '/traits',
                '/allocations')  # fmt: skip
        for budget, path in (
            *((1, own + one) for one in ones),
            (1, f'/allocations/{consumer}'),
            (1, '/usages?project_id=project'),
            (1, '/resource_classes/VCPU'),
            (1, '/traits/HW_CPU_X86_AVX'),
            (1, '/resource_providers'),
            (3, filtered),
            (1, '/resource_classes'),
            (1, '/traits'),
        ):
            with self.subTest(path=path):
                self.check(budget, self.providers, lambda _, path=path: self.send_ok('GET', path))
