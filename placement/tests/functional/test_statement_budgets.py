"""How many statements a request may cost, and that the number does not grow with the data."""

from collections.abc import Callable
from typing import Any
import uuid

from placement.tests.functional import base
from placement.tests.functional.base import claim


class StatementBudgetsTest(base.TestCase):
    """Each test asks once on a little data, then on the double, and expects the same number."""

    def assertFlat(self, budget: int, ask: Callable[[int], Any]) -> None:
        """`ask(n)` works on n things, and costs at most `budget` statements whatever n is."""
        ask(1)  # compiles, creates owners
        costs = []
        for size in (2, 4, 8):
            with self.counted() as counts:
                ask(size)
            costs.append(counts['all'])
        self.assertEqual(costs[0], costs[-1], f'the statements grow with the data: {costs}')
        self.assertEqual(costs[0], costs[1], f'the statements grow with the data: {costs}')
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
        self.sure('PUT', f'/allocations/{consumer}', body)

    def flat_over_providers(self, budget: int, ask: Callable[[list[str]], Any]) -> None:
        prepared = {size: self.providers(size) for size in (1, 2, 4, 8)}
        self.assertFlat(budget, lambda size: ask(prepared[size]))

    def test_put_allocations_of_a_new_consumer_of_a_known_project(self):
        self.flat_over_providers(
            12, lambda providers: self.put_claim(providers, str(uuid.uuid4()), None)
        )

    def test_put_allocations_of_a_new_consumer_of_a_new_project(self):
        self.flat_over_providers(
            11,
            lambda providers: self.put_claim(
                providers,
                str(uuid.uuid4()),
                None,
                project=str(uuid.uuid4()),
                user=str(uuid.uuid4()),
                consumer_type=f'TYPE_{uuid.uuid4().hex.upper()}',
            ),
        )

    def test_put_allocations_of_a_known_consumer_that_changes_hands(self):
        consumers = {}

        def ask(providers: list[str]) -> None:
            size = len(providers)
            if size not in consumers:
                consumers[size] = str(uuid.uuid4())
            self.put_claim(providers, consumers[size], None)

        def again(providers: list[str]) -> None:
            self.put_claim(providers, consumers[len(providers)], 1, project='another')

        prepared = {size: self.providers(size) for size in (1, 2, 4, 8)}
        for providers in prepared.values():
            ask(providers)
        self.assertFlat(16, lambda size: again(prepared[size]))

    def test_post_allocations_of_many_consumers(self):
        providers = self.providers(2)

        def ask(size: int) -> None:
            shares = {rp: {'VCPU': 1, 'MEMORY_MB': 2} for rp in providers}
            self.sure(
                'POST', '/allocations', {str(uuid.uuid4()): claim(shares) for _ in range(size)}
            )

        self.assertFlat(12, ask)

    def test_post_allocations_of_known_and_new_projects(self):
        """Which names are equal is for the database, in one statement however many they are."""
        providers = self.providers(1)
        self.put_claim(providers, str(uuid.uuid4()), None)

        def ask(size: int) -> None:
            shares = {rp: {'VCPU': 1, 'MEMORY_MB': 2} for rp in providers}
            projects = ['project', *(str(uuid.uuid4()) for _ in range(size))]
            body = {str(uuid.uuid4()): claim(shares, project=project) for project in projects}
            with self.counted() as counts:
                self.sure('POST', '/allocations', body)
            self.assertEqual(1, counts['WITH'], 'the names as rows')

        self.assertFlat(12, ask)

    def test_post_allocations_that_hand_over(self):
        """A move: what some consumers held goes to as many new ones, in one request."""
        providers = self.providers(2)

        def hold(size: int) -> list[str]:
            consumers = [str(uuid.uuid4()) for _ in range(size)]
            for consumer in consumers:
                self.put_claim(providers, consumer, None)
            return consumers

        held = {size: hold(size) for size in (1, 2, 4, 8)}

        def ask(size: int) -> None:
            body = {consumer: claim({}, 1) for consumer in held[size]}
            heirs = {
                str(uuid.uuid4()): claim({rp: {'VCPU': 1} for rp in providers}) for _ in held[size]
            }
            self.sure('POST', '/allocations', {**body, **heirs})

        self.assertFlat(16, ask)

    def test_delete_allocations(self):
        prepared = {}
        for size in (1, 2, 4, 8):
            prepared[size] = str(uuid.uuid4())
            self.put_claim(self.providers(size), prepared[size], None)
        self.assertFlat(4, lambda size: self.sure('DELETE', f'/allocations/{prepared[size]}'))

    def test_reshaper(self):
        """Inventory moves from roots to children, and the allocations with it."""

        def prepare(size: int) -> list[tuple[str, str, str]]:
            moved = []
            for root in self.providers(size, ('VCPU',)):
                child = self.make_provider(str(uuid.uuid4()), parent=root)
                consumer = str(uuid.uuid4())
                self.sure('PUT', f'/allocations/{consumer}', claim({root: {'VCPU': 2}}))
                moved.append((root, child, consumer))
            return moved

        prepared = {size: prepare(size) for size in (1, 2, 4, 8)}

        def ask(size: int) -> None:
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
            self.sure('POST', '/reshaper', body)

        self.assertFlat(16, ask)

    def test_put_inventories(self):
        """Some classes go, some come, some change."""
        names = [f'CUSTOM_BUDGET_{n}' for n in range(24)]
        for name in names:
            self.sure('PUT', f'/resource_classes/{name}')
        prepared = {
            size: self.make_provider(str(uuid.uuid4()), dict.fromkeys(names[: 2 * size], 10))
            for size in (1, 2, 4, 8)
        }

        def ask(size: int) -> None:
            records = {name: {'total': 20 + n} for n, name in enumerate(names[size : 3 * size])}
            self.sure(
                'PUT',
                f'/resource_providers/{prepared[size]}/inventories',
                {'resource_provider_generation': 1, 'inventories': records},
            )

        self.assertFlat(8, ask)

    def test_put_provider_traits(self):
        traits = [f'CUSTOM_BUDGET_{n}' for n in range(16)]
        for name in traits:
            self.sure('PUT', f'/traits/{name}')
        provider = self.make_provider('host')
        generation = [0]

        def ask(size: int) -> None:
            body = {
                'resource_provider_generation': generation[0],
                'traits': traits[size : 2 * size],
            }
            answer = self.sure('PUT', f'/resource_providers/{provider}/traits', body)
            generation[0] = answer['resource_provider_generation']

        self.assertFlat(5, ask)

    def test_put_aggregates(self):
        provider = self.make_provider('host')
        generation = [0]

        def ask(size: int) -> None:
            body = {
                'resource_provider_generation': generation[0],
                'aggregates': [str(uuid.uuid4()) for _ in range(size)],
            }
            answer = self.sure('PUT', f'/resource_providers/{provider}/aggregates', body)
            generation[0] = answer['resource_provider_generation']

        self.assertFlat(6, ask)

    def test_reparenting_a_subtree(self):
        def prepare(size: int) -> tuple[str, str]:
            top = self.make_provider(str(uuid.uuid4()))
            branch = self.make_provider(str(uuid.uuid4()), parent=top)
            for _ in range(size):
                self.make_provider(str(uuid.uuid4()), parent=branch)
            return branch, self.make_provider(str(uuid.uuid4()))

        prepared = {size: prepare(size) for size in (1, 2, 4, 8)}

        def ask(size: int) -> None:
            branch, target = prepared[size]
            body = {'name': str(uuid.uuid4()), 'parent_provider_uuid': target}
            self.sure('PUT', f'/resource_providers/{branch}', body)

        self.assertFlat(12, ask)

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
            # Usages by type first look whether there are types.
            budget = 2 if path.startswith('/usages') else 1
            with self.subTest(path=path):
                self.assertFlat(budget, lambda size, path=path: self.sure('GET', path))

    def test_lists_of_everything(self):
        for path, budget in (
            ('/resource_providers', 1),
            ('/resource_providers?resources=VCPU:1,MEMORY_MB:1&required=HW_CPU_X86_AVX', 3),
            ('/resource_classes', 1),
            ('/traits', 1),
        ):
            costs = []
            for _ in range(3):
                self.providers(2)
                with self.counted() as counts:
                    self.sure('GET', path)
                costs.append(counts['all'])
            self.assertEqual(1, len(set(costs)), f'{path}: {costs}')
            self.assertLessEqual(costs[0], budget, path)
