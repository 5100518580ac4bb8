"""Who may import whom, read off the source.

The rooms and the rules are those of doc/source/contributor/architecture.rst.
"""

import ast
from collections.abc import Iterator
import pathlib

from oslotest import base

import placement

ROOT = pathlib.Path(placement.__file__).parent

# Modules that may speak of HTTP.
EDGE = (
    'auth',
    'body_limit',
    'deploy',
    'direct',
    'fault_wrap',
    'handler',
    'handlers',
    'http',
    'negotiation',
    'requestlog',
    'util',
    'validation',
    'wsgi',
    'wsgi_wrapper',
)
HTTP_LIBRARIES = ('jsonschema', 'webob')
# Who opens transactions or speaks SQL. The rest of `candidates` is pure.
READERS = (
    'candidates.facts',
    'candidates.page_statements',
    'candidates.paging',
    'candidates.prefilter',
    'candidates.search',
    'candidates.statements',
    'candidates.summaries',
)
# Other modules that decide, and read nothing.
PURE = ('capacity', 'claims.judge', 'claims.model', 'objects.inventory_plan')

# Domain modules that other rooms may not be without.
FOUNDATION = ('errors', 'exception')

# Room -> rooms that it may import, besides itself and the foundation.
MAY_IMPORT = {
    'errors': (),
    'version': (),
    'exception': (),
    'microversion': ('bounded_cache',),
    'bounded_cache': (),
    'grammar': (),
    'capacity': (),
    'schemas': ('capacity', 'microversion'),
    'policies': (),
    'conf': (),
    'db': ('capacity',),
    'db_api': ('db',),
    'context': ('policy',),
    'policy': ('policies',),
    'objects': ('capacity', 'db', 'db_api'),
    'claims': ('capacity', 'db', 'db_api', 'objects'),
    'candidates': ('capacity', 'db', 'db_api', 'grammar', 'microversion'),
    'validation': (),
    'http': ('bounded_cache', 'microversion', 'validation'),
    'util': ('http',),
    'wsgi_wrapper': ('http',),
    'negotiation': ('http', 'microversion'),
    'requestlog': ('http', 'microversion'),
    'fault_wrap': ('http',),
    'body_limit': ('http',),
    'auth': ('context', 'http'),
    'handlers': (
        'candidates',
        'capacity',
        'claims',
        'context',
        'grammar',
        'http',
        'microversion',
        'objects',
        'policies',
        'schemas',
        'util',
        'validation',
        'wsgi_wrapper',
    ),
    'handler': ('handlers', 'http'),
}

# Among the objects, further down is imported by further up and never the other way round.
OBJECTS_DOWNWARD = (
    'allocation',
    'repair',
    'inventory',
    'inventory_rows',
    'inventory_plan',
    'usage',
    'provider_search',
    'aggregate',
    'trait',
    'resource_provider',
    'reparenting',
    'provider_locks',
    'provider_rows',
    'resource_class',
    'sync',
    'tree',
    'generation',
)

# The same for claims.
CLAIMS_DOWNWARD = (
    'reshape',
    'replace',
    'delete',
    'settle',
    'judge',
    'ground',
    'consumer',
    'owner',
    'statements',
    'model',
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the service, by its name below the package."""
    for path in sorted(ROOT.rglob('*.py')):
        parts = path.relative_to(ROOT).with_suffix('').parts
        if parts[0] != 'tests' and 'versions' not in parts:
            name = '.'.join(part for part in parts if part != '__init__')
            yield name, ast.parse(path.read_text())


def imports(tree: ast.Module) -> set[str]:
    """The full names of what a module imports, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f'{node.module}.{alias.name}' for alias in node.names)
    return found


def own(tree: ast.Module) -> set[str]:
    """What a module imports of this service, without the name of the package."""
    return {
        name.removeprefix('placement.') for name in imports(tree) if name.startswith('placement.')
    }


class LayersTest(base.BaseTestCase):
    def test_http_stays_at_the_edge(self):
        for name, tree in modules():
            if name.split('.')[0] in EDGE:
                continue
            for imported in imports(tree):
                self.assertNotIn(imported.split('.')[0], HTTP_LIBRARIES, name)

    def test_rooms(self):
        for name, tree in modules():
            room = name.split('.')[0]
            if room not in MAY_IMPORT:
                continue
            allowed = (room, *MAY_IMPORT[room], *FOUNDATION)
            for imported in own(tree):
                self.assertIn(imported.split('.')[0], allowed, f'{name} imports {imported}')

    def test_every_room_has_rules(self):
        # These put the rest together and may import everything.
        outermost = {'', 'deploy', 'direct', 'cmd', 'wsgi'}
        rooms = {name.split('.')[0] for name, _ in modules()}
        self.assertEqual(set(), rooms - MAY_IMPORT.keys() - outermost)

    def test_objects_import_downward(self):
        self.check_downward('objects', OBJECTS_DOWNWARD)

    def test_claims_import_downward(self):
        self.check_downward('claims', CLAIMS_DOWNWARD)

    def check_downward(self, package, order):
        for name, tree in modules():
            if not name.startswith(f'{package}.'):
                continue
            here = order.index(name.split('.')[1])
            for imported in own(tree):
                if imported.startswith(f'{package}.'):
                    there = order.index(imported.split('.')[1])
                    self.assertLess(here, there, f'{name} imports {imported}')

    def test_what_thinks_does_not_read(self):
        for name, tree in modules():
            if name in PURE or (name.startswith('candidates') and name not in READERS):
                self.assertTrue(own(tree).isdisjoint(('db_api', 'db.engine')), name)
                self.assertFalse(any(one.startswith('sqlalchemy') for one in imports(tree)), name)
