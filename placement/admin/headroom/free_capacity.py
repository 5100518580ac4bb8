"""The free capacity that simulated claims leave."""

from collections.abc import Iterable, Mapping

from placement import capacity
from placement.candidates import model
from placement.candidates.model import InventoryKey

# Inventory -> the amount that a claim takes from it.
Amounts = Mapping[InventoryKey, int]


def amounts_of(slots: tuple[model.Slot, ...], binding: model.Binding) -> dict[InventoryKey, int]:
    """Return the amounts that a claim of a candidate takes."""
    amounts: dict[InventoryKey, int] = {}
    for slot, provider_id in zip(slots, binding, strict=True):
        for class_id, amount in slot.amounts:
            key = provider_id, class_id
            amounts[key] = amounts.get(key, 0) + amount
    return amounts


class FreeCapacity:
    """The free capacity of the inventories from which simulated claims took.

    A sharing provider belongs to several anchors, so one object serves all anchors.
    """

    def __init__(self) -> None:
        self._free: dict[InventoryKey, int] = {}
        # The ids of the providers of these inventories.
        self._changed: set[int] = set()

    def current(self, anchor: model.Anchor) -> model.Anchor:
        """Return the anchor with its present usage; the same object if no claim changed it."""
        if self._changed.isdisjoint([provider.id for provider in anchor.providers]):
            return anchor
        return anchor._replace(
            root=self._current(anchor.root),
            tree=tuple(map(self._current, anchor.tree)),
            sharing_providers=tuple(map(self._current, anchor.sharing_providers)),
        )

    def _current(self, provider: model.Provider) -> model.Provider:
        if provider.id not in self._changed:
            return provider
        inventories = {
            class_id: inventory
            if (free := self._free.get((provider.id, class_id))) is None
            else inventory._replace(used=capacity.free(free, inventory.capacity))
            for class_id, inventory in provider.inventories.items()
        }
        return provider._replace(inventories=inventories)

    def fits(self, amounts: Amounts) -> bool:
        """Whether the claims so far leave enough of the inventories that they changed."""
        free = self._free
        return all(amount <= free.get(key, amount) for key, amount in amounts.items())

    def take(
        self,
        providers: Mapping[int, model.Provider],
        amounts: Amounts,
        at_most: int = capacity.MAX_INT,
    ) -> int:
        """Take the amounts of a claim as often as they fit.

        :param providers: provider id -> provider, with the usage before the first claim or the one
            that `current` returned last
        :param at_most: take them at most this often
        :returns: how often the amounts were taken
        """
        free = self._free
        self._read(providers, amounts)
        count = min(at_most, *(free[key] // amount for key, amount in amounts.items()))
        if count <= 0:
            return 0
        for (provider_id, class_id), amount in amounts.items():
            free[provider_id, class_id] -= count * amount
            self._changed.add(provider_id)
        return count

    def release(self, providers: Mapping[int, model.Provider], amounts: Amounts) -> None:
        """Reduce the usage of inventories.

        :param providers: provider id -> provider, with the usage before the first claim
        """
        self._read(providers, amounts)
        for (provider_id, class_id), amount in amounts.items():
            self._free[provider_id, class_id] += amount
            self._changed.add(provider_id)

    def _read(self, providers: Mapping[int, model.Provider], keys: Iterable[InventoryKey]) -> None:
        for provider_id, class_id in keys:
            if (provider_id, class_id) not in self._free:
                inventory = providers[provider_id].inventories[class_id]
                left = capacity.free(inventory.used, inventory.capacity)
                self._free[provider_id, class_id] = left
