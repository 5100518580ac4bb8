"""Searches in a database in memory, without HTTP."""

from collections import Counter
from collections.abc import Sequence
import random

from oslotest import base

from placement.candidates import model, search
from placement.tests import worlds
from placement.tests.worlds import rows

STRATEGIES = ('depth-first', 'breadth-first')
# More trees than a first page has.
MANY = 40


def bindings(candidates: Sequence[model.Candidate]) -> Counter[model.Binding]:
    return Counter(candidate.binding for candidate in candidates)


class DatabaseTestCase(base.BaseTestCase):
    """Searches in an in-memory database."""

    def setUp(self) -> None:
        super().setUp()
        self.conn = self.enterContext(rows.database())

    def fill(self, world: worlds.World) -> None:
        rows.fill(self.conn, world, names=True)
        self.world = world

    def query(self, text: str) -> model.Query[str]:
        return self.world.unbind(self.world.parse(text))

    def search(self, query: str | model.Query[str], rng: random.Random | None = None, **options):
        """Search in the world of the database.

        :param options: values of `search.Options`
        """
        query = self.query(query) if isinstance(query, str) else query
        return search.search_with(self.conn, query, search.Options(**options), rng=rng)
