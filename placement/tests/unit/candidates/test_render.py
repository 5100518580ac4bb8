"""The text of allocation requests, compared with objects that are built in a plain way."""

from collections.abc import Sequence
import json
from typing import Any

import hypothesis
from hypothesis import strategies as st

from placement import microversion
from placement.candidates import model, render
from placement.tests.properties import UnmeasuredTestCase, examples

# Each run has the same examples, so that only a change of the code can cause a failure.
EXAMPLES = hypothesis.settings(
    max_examples=examples(100), deadline=None, database=None, derandomize=True
)
NAMES = {1: 'VCPU', 2: 'MEMORY_MB', 3: 'CUSTOM_GOLD'}
# The ids of providers. An id of a provider can be the number of a slot, too.
IDS = range(6)
UUIDS = {id_: f'{id_}0000000-0000-4000-8000-000000000000' for id_ in IDS}
SHAPES = tuple(render.Shape.of(microversion.of_text(text)) for text in ('1.10', '1.12', '1.34'))


def request(binding: model.Binding, slots: Sequence[model.Slot], shape: render.Shape) -> Any:
    """Return the allocation request of a binding."""
    amounts: dict[str, dict[str, int]] = {UUIDS[id_]: {} for id_ in binding}
    mappings: dict[str, list[str]] = {}
    for id_, slot in zip(binding, slots, strict=True):
        uuid = UUIDS[id_]
        for class_id, amount in slot.amounts:
            name = NAMES[class_id]
            amounts[uuid][name] = amounts[uuid].get(name, 0) + amount
        providers = mappings.setdefault(slot.group.suffix, [])
        if uuid not in providers:
            providers.append(uuid)
    resources = {uuid: {'resources': some} if some else {} for uuid, some in amounts.items()}
    if not shape.keyed:
        return {
            'allocations': [
                {'resource_provider': {'uuid': uuid}, **some} for uuid, some in resources.items()
            ]
        }
    allocations = {uuid: some for uuid, some in resources.items() if some}
    return {'allocations': allocations} | ({'mappings': mappings} if shape.mappings else {})


@st.composite
def queries(draw: st.DrawFn, most_suffixed: int) -> tuple[model.Slot, ...]:
    amounts = st.lists(
        st.tuples(st.sampled_from(sorted(NAMES)), st.integers(1, 9)), unique_by=lambda one: one[0]
    ).map(tuple)
    suffixed = draw(st.lists(amounts, min_size=1, max_size=most_suffixed))
    groups = [model.Group('', draw(amounts))]
    groups += [model.Group(f'_{n}', amounts) for n, amounts in enumerate(suffixed)]
    return model.slots_of(model.Query(tuple(groups)))


class AllocationRequestsTest(UnmeasuredTestCase):
    def check(self, slots: Sequence[model.Slot], bindings: Sequence[model.Binding]) -> None:
        for shape in SHAPES:
            texts = render.allocation_requests(bindings, slots, UUIDS, NAMES, shape)
            expected = [request(binding, slots, shape) for binding in bindings]
            self.assertEqual(expected, [json.loads(text) for text in texts])

    @hypothesis.settings(EXAMPLES)
    @hypothesis.given(st.data(), queries(most_suffixed=4))
    def test_bindings(self, data: st.DataObject, slots: tuple[model.Slot, ...]) -> None:
        """Bindings with few or many patterns."""
        ids = data.draw(st.sampled_from([IDS, IDS[:2]]))
        binding = st.tuples(*[st.sampled_from(ids) for _ in slots])
        self.check(slots, data.draw(st.lists(binding, max_size=150)))

    @hypothesis.settings(EXAMPLES, max_examples=examples(20))
    @hypothesis.given(st.data(), queries(most_suffixed=60))
    def test_many_slots(self, data: st.DataObject, slots: tuple[model.Slot, ...]) -> None:
        binding = st.tuples(*[st.sampled_from(IDS) for _ in slots])
        self.check(slots, data.draw(st.lists(binding, max_size=3)))

    def test_no_bindings(self) -> None:
        """The names of the classes are read only if there are candidates."""
        slots = model.slots_of(model.Query((model.Group('', ((1, 1),)),)))
        self.assertEqual([], list(render.allocation_requests([], slots, {}, {}, SHAPES[-1])))
