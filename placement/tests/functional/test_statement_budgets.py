"""The number of SQL statements of each request is bounded and does not grow with the data."""

from collections.abc import Callable
from typing import Any
import uuid

from placement.tests.functional import base
from placement.tests.functional.base import claim

SIZES = (1, 2, 4, 8)


class StatementBudgetsTest(base.TestCase):
    """Each test sends the same request for different amounts of data."""

    def assertConstant(self, budget: int, send: Callable[[int], Any]) -> None:
        """Require that `send(size)` executes the same number of statements for every size.

        :param budget: the maximum number of statements
        """
        send(1)  # creates the project, user and consumer type, and compiles the statements
        costs = []
        for size in SIZES[1:]:
            with self.counted() as counts:
                send(size)
            costs.append(counts['all'])
        self.assertEqual(1, len(set(costs)), f'the statements grow with the data: {costs}')
        self.assertLessEqual(costs[0], budget)
        self.assertGreater(costs[0], 0)

    def providers(self, count: int, classes: tuple[str, ...] = ('VCPU', 'MEMORY_MB')) -> list[str]:
        return [
            self.make_provider(str(uuid.uuid4()), dict.fromkeys(classes, 1000))
            for _ in range(count)
        ]

    def put_claim(
        self, providers: list[str], consumer: str, generation: int | None, **owner: str
    ) -> None:
        body = claim({rp: {'VCPU': 1, 'MEMORY_MB': 1} for rp in providers}, generation, **owner)
        self.send_ok('PUT', f'/allocations/{consumer}', body)

    def assertConstantOverProviders(self, budget: int, send: Callable[[list[str]], Any]) -> None:
        prepared = {size: self.providers(size) for size in SIZES}
        self.assertConstant(budget, lambda size: send(prepared[size]))

    def test_put_allocations_of_a_new_consumer_of_an_existing_project(self):
        self.assertConstantOverProviders(
            6, lambda providers: self.put_claim(providers, str(uuid.uuid4()), None)
        )

    def test_put_allocations_of_a_new_consumer_of_one_provider(self):
        (provider,) = self.providers(1)
        self.put_claim([provider], str(uuid.uuid4()), None)
        for project, inserts in (('project', 2), ('another', 3)):
            with self.subTest(project=project), self.counted() as counts:
                self.put_claim([provider], str(uuid.uuid4()), None, project=project)
            self.assertEqual({'INSERT': inserts, 'UPDATE': 1, 'all': inserts + 1}, dict(counts))

    def test_put_allocations_before_consumer_generations(self):
        """The client does not state whether the consumer exists, so the consumer is locked."""

        def send(providers: list[str]) -> None:
            body = claim({rp: {'VCPU': 1, 'MEMORY_MB': 1} for rp in providers})
            del body['consumer_generation'], body['consumer_type']
            self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body, '1.27')

        self.assertConstantOverProviders(7, send)

    def test_put_allocations_of_an_existing_consumer(self):
        prepared = {size: (str(uuid.uuid4()), self.providers(size)) for size in SIZES}
        for consumer, providers in prepared.values():
            self.put_claim(providers, consumer, None)

        def send(size: int) -> None:
            consumer, providers = prepared[size]
            self.put_claim(providers, consumer, 1)

        self.assertConstant(8, send)

    def test_put_allocations_that_release_nothing(self):
        """A consumer that does not exist is released; only reads are necessary."""
        body = claim({})
        self.assertConstant(
            2, lambda size: self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body)
        )

    def test_put_allocations_of_a_new_consumer_of_a_new_project(self):
        self.assertConstantOverProviders(
            9,
            lambda providers: self.put_claim(
                providers,
                str(uuid.uuid4()),
                None,
                project=str(uuid.uuid4()),
                user=str(uuid.uuid4()),
                consumer_type=f'TYPE_{uuid.uuid4().hex.upper()}',
            ),
        )

    def test_put_allocations_that_change_the_project_of_a_consumer(self):
        prepared = {size: (str(uuid.uuid4()), self.providers(size)) for size in SIZES}
        for consumer, providers in prepared.values():
            self.put_claim(providers, consumer, None)

        def send(size: int) -> None:
            consumer, providers = prepared[size]
            self.put_claim(providers, consumer, 1, project='another')

        self.assertConstant(8, send)

    def test_post_allocations_of_many_consumers(self):
        providers = self.providers(2)

        def send(size: int) -> None:
            allocations = {rp: {'VCPU': 1, 'MEMORY_MB': 2} for rp in providers}
            self.send_ok(
                'POST', '/allocations', {str(uuid.uuid4()): claim(allocations) for _ in range(size)}
            )

        self.assertConstant(6, send)

    def test_post_allocations_of_existing_and_new_projects(self):
        """One statement compares all names, because only the database can compare names."""
        providers = self.providers(1)
        self.put_claim(providers, str(uuid.uuid4()), None)

        def send(size: int) -> None:
            allocations = {rp: {'VCPU': 1, 'MEMORY_MB': 2} for rp in providers}
            projects = ['project', *(str(uuid.uuid4()) for _ in range(size))]
            body = {str(uuid.uuid4()): claim(allocations, project=project) for project in projects}
            with self.counted() as counts:
                self.send_ok('POST', '/allocations', body)
            self.assertEqual(1, counts['WITH'], 'statements that compare names')

        self.assertConstant(9, send)

    def test_post_allocations_that_move_allocations_to_new_consumers(self):
        providers = self.providers(2)

        def create_consumers(size: int) -> list[str]:
            consumers = [str(uuid.uuid4()) for _ in range(size)]
            for consumer in consumers:
                self.put_claim(providers, consumer, None)
            return consumers

        prepared = {size: create_consumers(size) for size in SIZES}

        def send(size: int) -> None:
            released = {consumer: claim({}, 1) for consumer in prepared[size]}
            claimed = {
                str(uuid.uuid4()): claim({rp: {'VCPU': 1} for rp in providers})
                for _ in prepared[size]
            }
            self.send_ok('POST', '/allocations', {**released, **claimed})

        self.assertConstant(9, send)

    def test_delete_allocations(self):
        prepared = {}
        for size in SIZES:
            prepared[size] = str(uuid.uuid4())
            self.put_claim(self.providers(size), prepared[size], None)
        self.assertConstant(
            3, lambda size: self.send_ok('DELETE', f'/allocations/{prepared[size]}')
        )

    def test_reshaper(self):
        """The request moves inventories and allocations from roots to children."""

        def prepare(size: int) -> list[tuple[str, str, str]]:
            reshaped = []
            for root in self.providers(size, ('VCPU',)):
                child = self.make_provider(str(uuid.uuid4()), parent=root)
                consumer = str(uuid.uuid4())
                self.send_ok('PUT', f'/allocations/{consumer}', claim({root: {'VCPU': 2}}))
                reshaped.append((root, child, consumer))
            return reshaped

        prepared = {size: prepare(size) for size in SIZES}

        def send(size: int) -> None:
            inventories = {}
            allocations = {}
            for root, child, consumer in prepared[size]:
                inventories[root] = {'resource_provider_generation': 2, 'inventories': {}}
                inventories[child] = {
                    'resource_provider_generation': 0,
                    'inventories': {'VCPU': {'total': 1000}},
                }
                allocations[consumer] = claim({child: {'VCPU': 2}}, 1)
            body = {'inventories': inventories, 'allocations': allocations}
            self.send_ok('POST', '/reshaper', body)

        self.assertConstant(10, send)

    def test_registration_of_a_host(self):
        """The requests of a new compute node, which change tables that have no rows of the host."""
        host = str(uuid.uuid4())
        requests = (
            (2, 'POST', '', {'name': host, 'uuid': host}),
            (
                2,
                'PUT',
                f'/{host}/inventories',
                {
                    'resource_provider_generation': 0,
                    'inventories': {name: {'total': 8} for name in ('VCPU', 'MEMORY_MB')},
                },
            ),
            (
                3,
                'PUT',
                f'/{host}/traits',
                {'resource_provider_generation': 1, 'traits': ['COMPUTE_NODE', 'HW_CPU_X86_AVX']},
            ),
            (
                4,
                'PUT',
                f'/{host}/aggregates',
                {'resource_provider_generation': 2, 'aggregates': [str(uuid.uuid4())]},
            ),
        )
        for budget, method, path, body in requests:
            with self.subTest(path=path), self.counted() as counts:
                self.send_ok(method, f'/resource_providers{path}', body)
            self.assertEqual(budget, counts['all'], f'{method} {path}')

    def test_put_inventories_without_a_change(self):
        """Only the generation of the provider changes, also if a ratio has no exact binary form."""
        provider = self.make_provider('host')
        own = f'/resource_providers/{provider}/inventories'
        inventories = {
            'VCPU': {'total': 8, 'allocation_ratio': 16.1},
            'MEMORY_MB': {'total': 8, 'allocation_ratio': 0.7},
        }
        for generation in range(2):
            body = {'resource_provider_generation': generation, 'inventories': inventories}
            with self.counted() as counts:
                self.send_ok('PUT', own, body)
        self.assertEqual({'SELECT': 1, 'UPDATE': 1, 'all': 2}, dict(counts))

    def test_put_inventories(self):
        """The request deletes, adds and changes inventories."""
        names = [f'CUSTOM_BUDGET_{n}' for n in range(24)]
        for name in names:
            self.send_ok('PUT', f'/resource_classes/{name}')
        prepared = {
            size: self.make_provider(str(uuid.uuid4()), dict.fromkeys(names[: 2 * size], 10))
            for size in SIZES
        }

        def send(size: int) -> None:
            inventories = {name: {'total': 20 + n} for n, name in enumerate(names[size : 3 * size])}
            self.send_ok(
                'PUT',
                f'/resource_providers/{prepared[size]}/inventories',
                {'resource_provider_generation': 1, 'inventories': inventories},
            )

        self.assertConstant(6, send)

    def test_put_provider_traits(self):
        traits = [f'CUSTOM_BUDGET_{n}' for n in range(16)]
        for name in traits:
            self.send_ok('PUT', f'/traits/{name}')
        provider = self.make_provider('host')
        generation = [0]

        def send(size: int) -> None:
            body = {
                'resource_provider_generation': generation[0],
                'traits': traits[size : 2 * size],
            }
            response = self.send_ok('PUT', f'/resource_providers/{provider}/traits', body)
            generation[0] = response['resource_provider_generation']

        self.assertConstant(4, send)

    def test_put_aggregates(self):
        provider = self.make_provider('host')
        generation = [0]

        def send(size: int) -> None:
            body = {
                'resource_provider_generation': generation[0],
                'aggregates': [str(uuid.uuid4()) for _ in range(size)],
            }
            response = self.send_ok('PUT', f'/resource_providers/{provider}/aggregates', body)
            generation[0] = response['resource_provider_generation']

        self.assertConstant(6, send)

    def test_reparenting_a_subtree(self):
        def prepare(size: int) -> tuple[str, str]:
            top = self.make_provider(str(uuid.uuid4()))
            branch = self.make_provider(str(uuid.uuid4()), parent=top)
            for _ in range(size):
                self.make_provider(str(uuid.uuid4()), parent=branch)
            return branch, self.make_provider(str(uuid.uuid4()))

        prepared = {size: prepare(size) for size in SIZES}

        def send(size: int) -> None:
            branch, target = prepared[size]
            body = {'name': str(uuid.uuid4()), 'parent_provider_uuid': target}
            self.send_ok('PUT', f'/resource_providers/{branch}', body)

        self.assertConstant(10, send)

    def test_reads_of_one_entity(self):
        provider = self.providers(1)[0]
        consumer = str(uuid.uuid4())
        self.put_claim([provider], consumer, None)
        own = f'/resource_providers/{provider}'
        paths = [
            own,
            f'{own}/inventories',
            f'{own}/inventories/VCPU',
            f'{own}/usages',
            f'{own}/aggregates',
            f'{own}/traits',
            f'{own}/allocations',
            f'/allocations/{consumer}',
            '/usages?project_id=project',
            '/resource_classes/VCPU',
            '/traits/HW_CPU_X86_AVX',
        ]
        for path in paths:
            with self.subTest(path=path):
                self.assertConstant(1, lambda size, path=path: self.send_ok('GET', path))

    def test_lists_of_everything(self):
        filtered = '/resource_providers?resources=VCPU:1,MEMORY_MB:1&required=HW_CPU_X86_AVX'
        budgets = {'/resource_providers': 1, filtered: 3, '/resource_classes': 1, '/traits': 1}
        for path, budget in budgets.items():
            costs = []
            for _ in range(3):
                self.providers(2)
                with self.counted() as counts:
                    self.send_ok('GET', path)
                costs.append(counts['all'])
            self.assertEqual(1, len(set(costs)), f'{path}: {costs}')
            self.assertLessEqual(costs[0], budget, path)
