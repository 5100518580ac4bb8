"""Hypothesis strategies that generate small worlds and queries (see `seeded`)."""

from collections.abc import Callable
import random

from hypothesis import strategies as st

from placement.candidates import model
from placement.tests import worlds
from placement.tests.worlds import seeded

_Searches = st.SearchStrategy[tuple[worlds.World, model.Query[int]]]


def _from(make: Callable[[random.Random], seeded.Search]) -> _Searches:
    """Hypothesis draws only a seed, because drawing each number would take ten times as long."""
    found = st.randoms(use_true_random=True).map(make)
    return found.map(lambda search: (search.world, search.query))


def searches() -> _Searches:
    return _from(seeded.search)


def sharing_searches() -> _Searches:
    return _from(seeded.sharing)


def contended_searches() -> _Searches:
    return _from(seeded.contended)
