"""Files of exports for tests, written independently of the code that reads and writes files."""

from collections.abc import Callable, Iterable, Iterator
import datetime
import itertools
import json
import random
from typing import Any
import uuid

REVISION = 'a082b8bb98d0'
# The fields of each kind of rows, in the order of a file, before the times.
FIELDS = {
    'resource_class': ('name',),
    'trait': ('name',),
    'aggregate': ('uuid',),
    'provider': ('uuid', 'name', 'generation', 'parent'),
    'inventory': (
        *('provider', 'resource_class', 'total', 'reserved'),
        *('min_unit', 'max_unit', 'step_size', 'allocation_ratio'),
    ),
    'provider_trait': ('provider', 'trait'),
    'provider_aggregate': ('provider', 'aggregate'),
    'consumer_type': ('name',),
    'project': ('external_id',),
    'user': ('external_id',),
    'consumer': ('uuid', 'generation', 'project', 'user', 'consumer_type'),
    'allocation': ('consumer', 'provider', 'resource_class', 'used'),
}
KINDS = tuple(FIELDS)
TIMES: tuple[str | None, str | None] = ('2026-01-02T03:04:05Z', None)
CHANGED = ('2026-01-02T03:04:05Z', '2026-02-03T04:05:06Z')
HOST, DEVICE, POOL, AGGREGATE, CONSUMER, OTHER = (
    f'{digit}0000000-0000-4000-8000-000000000000' for digit in 'abcdef'
)
NAME = 'host "1" \N{GRINNING FACE}'

Row = dict[str, Any]


def row(kind: str, *values: Any, times: tuple[str | None, str | None] = TIMES) -> Row:
    """A row of a kind; the values are in the order of its fields."""
    names = (*FIELDS[kind], 'created_at', 'updated_at')
    return {'kind': kind, **dict(zip(names, (*values, *times), strict=True))}


# A cloud with all kinds of rows, in the order of a file.
EXAMPLE: tuple[Row, ...] = (
    row('resource_class', 'CUSTOM_GPU'),
    row('resource_class', 'VCPU'),
    row('trait', 'CUSTOM_FAST'),
    row('trait', 'HW_CPU_X86_AVX2'),
    row('aggregate', AGGREGATE),
    row('provider', HOST, NAME, 3, None, times=CHANGED),
    row('provider', POOL, 'pool', 1, None),
    row('provider', DEVICE, 'gpu', 0, HOST),
    row('inventory', HOST, 'VCPU', 64, 0, 1, 64, 1, 1.5, times=CHANGED),
    row('inventory', DEVICE, 'CUSTOM_GPU', 1, 0, 1, 64, 1, 1.5),
    row('provider_trait', HOST, 'CUSTOM_FAST'),
    row('provider_trait', HOST, 'HW_CPU_X86_AVX2'),
    row('provider_aggregate', POOL, AGGREGATE),
    row('consumer_type', 'INSTANCE'),
    row('project', 'project-1'),
    row('user', 'user-1'),
    row('user', 'user-2'),
    row('consumer', CONSUMER, 1, 'project-1', 'user-1', 'INSTANCE', times=CHANGED),
    row('consumer', OTHER, 2, 'project-1', 'user-2', None),
    row('allocation', CONSUMER, HOST, 'VCPU', 4),
    row('allocation', CONSUMER, DEVICE, 'CUSTOM_GPU', 1),
    row('allocation', OTHER, HOST, 'VCPU', 8),
)


def header(rows: Iterable[Row]) -> Row:
    """The first line of a file."""
    counts = dict.fromkeys(KINDS, 0)
    for row in rows:
        counts[row['kind']] += 1
    return {
        'format': 'placement-export',
        'version': 1,
        'schema_revision': REVISION,
        'counts': counts,
    }


def file_of(rows: Iterable[Row]) -> bytes:
    """A file with these rows."""
    rows = list(rows)
    return text_of([header(rows), *rows])


def text_of(documents: Iterable[Any]) -> bytes:
    """A file with these lines; bytes are written as they are."""
    return b''.join(
        document
        if isinstance(document, bytes)
        else json.dumps(document, ensure_ascii=False, separators=(',', ':')).encode() + b'\n'
        for document in documents
    )


# Invalid files ------------------------------------------------------------------

Documents = list[Any]
# Changes the lines of a file, and returns the number of the line that is then invalid.
Edit = Callable[[Documents], int]


def edit(kind: str, which: int, lines: Callable[[Any], Documents], offset: int = 0) -> Edit:
    """Replace a line by other lines.

    :param kind: the kind of the line; `header` is the first line of the file
    :param which: the number of the line among those of its kind, from 0
    :param offset: the number of lines from the replaced line to the invalid line
    """

    def edited(documents: Documents) -> int:
        kinds = ['header', *(one['kind'] for one in documents[1:])]
        index = [n for n, one in enumerate(kinds) if one == kind][which]
        documents[index : index + 1] = lines(documents[index])
        return index + 1 + offset

    return edited


def counted(other: Edit) -> Edit:
    """Let the first line state the numbers of lines after an edit."""

    def edited(documents: Documents) -> int:
        number = other(documents)
        documents[0] = header(documents[1:])
        return number

    return edited


def change(kind: str, which: int = 0, /, offset: int = 0, **values: Any) -> Edit:
    """Set fields of a line."""
    return edit(kind, which, lambda line: [{**line, **values}], offset)


def replace(kind: str, old: bytes, new: bytes) -> Edit:
    """Replace a part of the text of a line."""
    return edit(kind, 0, lambda line: [text_of([line]).replace(old, new)])


def insert(kind: str, line: Any, offset: int = 0) -> Edit:
    """Insert a line before another one."""
    return edit(kind, 0, lambda following: [line, following], offset)


def without(kind: str, name: str) -> Edit:
    return edit(kind, 0, lambda line: [{k: v for k, v in line.items() if k != name}])


def remove(kind: str, which: int = 0, offset: int = 0) -> Edit:
    """Remove a line; the invalid line is the next one, or a later one."""
    return edit(kind, which, lambda _: [], offset)


def repeat(kind: str, which: int = 0, /, **values: Any) -> Edit:
    """Insert a changed copy of a line after it, and count it."""
    return counted(edit(kind, which, lambda line: [line, {**line, **values}], 1))


def edited(edit: Edit) -> tuple[bytes, int]:
    """The example after an edit, and the number of the invalid line."""
    documents: Documents = [header(EXAMPLE), *EXAMPLE]
    number = edit(documents)
    return text_of(documents), number


# The texts by their longest length.
LONGEST = {
    36: 'aggregate.uuid provider.uuid provider.parent inventory.provider consumer.uuid '
    'provider_aggregate.aggregate allocation.consumer allocation.provider',
    200: 'provider.name',
    255: 'resource_class.name trait.name inventory.resource_class provider_trait.trait '
    'consumer_type.name project.external_id user.external_id consumer.project consumer.user '
    'consumer.consumer_type',
}
# Values that a field cannot have, and a part of the message.
_VALUES: tuple[tuple[str, str, tuple[Any, ...], str], ...] = (
    ('header', 'format', ('other',), 'not an export'),
    ('header', 'version', ('1', 0, True, 2), 'newer release'),
    ('header', 'counts', ({'provider': 1}, 3, dict.fromkeys(KINDS, '1')), 'counts'),
    ('trait', 'kind', ('color', ['trait'], None), 'is unknown'),
    ('trait', 'color', (1,), "'color' is unknown"),
    ('project', 'external_id', (7, None), 'must be a string'),
    ('inventory', 'total', ('64', 64.0, True, None), 'must be an integer'),
    ('inventory', 'total', (0, -1, 2**31), 'from 1 to 2147483647'),
    ('inventory', 'step_size', (0,), 'from 1 to'),
    ('inventory', 'reserved', (-1,), 'from 0 to'),
    ('provider', 'generation', (-1,), 'from 0 to'),
    ('allocation', 'used', (0,), 'from 1 to'),
    ('inventory', 'allocation_ratio', ('1.0', None, True), 'must be a number'),
    ('inventory', 'allocation_ratio', (3.5e38, -3.5e38, 10**400), 'from -3.4'),
    ('trait', 'created_at', ('2026-01-02T03:04Z', '2026-01-02T03:04:05.5Z'), 'time like'),
    ('trait', 'created_at', ('2026-01-02T03:04:05+01:00', '2026-W01-1T03:04:05Z'), 'time like'),
    ('trait', 'updated_at', ('2026-02-30T03:04:05Z',), 'time like'),
    ('trait', 'updated_at', (1767323045,), 'must be a string or null'),
)
# An edit, and a part of the message. The lines themselves are not valid.
INVALID: tuple[tuple[Edit, str], ...] = (
    *(
        (change(kind, **{field: value}), text)
        for kind, field, values, text in _VALUES
        for value in values
    ),
    *(
        (change(kind, **{field: 'x' * (longest + 1)}), f'longer than {longest}')
        for longest, names in LONGEST.items()
        for name in names.split()
        for kind, field in (name.split('.'),)
    ),
    (change('header', version=2, more=1), 'newer release'),
    (without('inventory', 'total'), 'total is missing'),
    (without('inventory', 'updated_at'), 'updated_at is missing'),
    (replace('inventory', b':64,', b':' + b'9' * 5000 + b','), ''),
    (replace('inventory', b':1.5,', b':1e999,'), 'from -3.4'),
    (replace('inventory', b':1.5,', b':NaN,'), 'from -3.4'),
    (replace('project', b'project-1', b'proj\xe9t'), 'UTF-8'),
    (replace('project', b'project-1', rb'\ud83d'), 'UTF-8'),
    (insert('project', b'\n'), 'JSON'),
    (insert('project', b'["kind"]\n'), 'not a JSON object'),
    (insert('project', b'[' * 60000 + b'\n'), 'JSON'),
    (insert('project', b'[' + b' ' * 70000 + b']\n'), 'longer than 65536'),
    (repeat('project'), 'same key'),
    (repeat('allocation', 1, used=7), 'same key'),
    (repeat('consumer', 1, generation=7), 'same key'),
    (change('user', 0, offset=1, external_id='x'), 'not in order'),
    (change('allocation', 0, offset=1, provider=POOL), 'not in order'),
    (remove('inventory', 0, 13), 'states 2 of the kind inventory, but the file has 1'),
    (remove('provider_aggregate', 0, 9), 'aggregate, but the file has 0'),
    (remove('allocation', -1), 'of the kind allocation, but the file has 2'),
    (insert('user', row('project', 'project-2'), 8), 'project, but the file has 2'),
    (insert('consumer', row('project', 'project-2')), 'not in order'),
)
# The lines refer to missing rows, or violate unique keys.
INCONSISTENT: tuple[tuple[Edit, str], ...] = (
    (repeat('provider', 0, name='other'), 'equal to'),
    (repeat('provider', 2, uuid=HOST, name='other'), 'equal to'),
    (change('provider', 1, name=NAME), 'equal to'),
    (change('provider', 2, parent=OTHER), f"the provider '{OTHER}'"),
    (change('provider', 2, parent=DEVICE), 'provider'),
    (change('provider', 0, parent=POOL), 'provider'),
    (change('inventory', 1, provider=OTHER), 'the provider'),
    (change('inventory', 0, resource_class='LIGHT'), "'LIGHT'"),
    (change('inventory', 0, resource_class='DISK_GB'), "'DISK_GB'"),
    (change('provider_trait', 1, trait='HW_NIC_SRIOV'), "'HW_NIC_SRIOV'"),
    (change('provider_aggregate', aggregate=OTHER), 'the aggregate'),
    (change('consumer', 0, project='project-2'), "project 'project-2'"),
    (change('consumer', 1, user='USER-2'), "user 'USER-2'"),
    (change('allocation', 2, resource_class='WWW'), "'WWW'"),
    (change('resource_class', 1, name='ZEBRA'), 'os-resource-classes'),
    (counted(remove('trait', 0, 7)), "trait 'CUSTOM_FAST'"),
    (counted(remove('consumer', 0, 1)), f"consumer '{CONSUMER}'"),
)


# Random files -------------------------------------------------------------------

# They start with different characters, so that they are different in every collation. The order of
# code points is not the order of any collation, and not the order of UTF-16.
_STARTS = ('0', 'B', 'Zoo', '_', 'ant', 'x\t', 'y', '\xe9', '\u4f60', '\uffee', '\U0001f600')
_ODD = ('', ' "quoted"', '\\', ' \N{GRINNING FACE}', '\u2028', '\x85', '\x1f', " o'", ' %s {}')


def random_rows(seed: int) -> list[Row]:
    """The rows of a random cloud with up to 20 providers and 30 consumers."""
    return _Cloud(random.Random(seed)).rows()


class _Cloud:
    """Draws the rows of a cloud."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._rows: list[Row] = []

    def rows(self) -> list[Row]:
        draw = self._random
        classes = self._named('resource_class', {'VCPU', 'PCPU', 'VGPU', *self._custom()})
        missing = 'NO_LONGER_IN_THE_LIBRARY'
        traits = self._named('trait', {'HW_NUMA_ROOT', missing, *self._custom()})
        aggregates = self._named('aggregate', self._uuids(4))
        providers = self._tree()
        for provider, name in self._pairs(providers, classes):
            numbers = (self._amount(least) for least in (1, 0, 1, 1, 1))
            self._add('inventory', provider, name, *numbers, self._ratio())
        for kind, names in (('trait', traits), ('aggregate', aggregates)):
            for provider, name in self._pairs(providers, names):
                self._add(f'provider_{kind}', provider, name)
        types = draw.sample(('INSTANCE', 'MIGRATION', 'A_B'), draw.randint(1, 3))
        types = self._named('consumer_type', types)
        projects, users = (self._named(kind, self._names()) for kind in ('project', 'user'))
        consumers = self._uuids(30) if providers else []
        for one in consumers:
            owners = draw.choice(projects), draw.choice(users), draw.choice([*types, None])
            self._add('consumer', one, self._amount(0), *owners)
        for consumer, provider in self._pairs(consumers, providers):
            for name in sorted(draw.sample(classes, draw.randint(1, 2))):
                self._add('allocation', consumer, provider, name, self._amount())
        return self._rows

    def _add(self, kind: str, *values: Any) -> None:
        self._rows.append(row(kind, *values, times=(self._time(), self._time())))

    def _named(self, kind: str, names: Iterable[str]) -> list[str]:
        """Add rows that have only a name, and return the names in their order."""
        names = sorted(names)
        for name in names:
            self._add(kind, name)
        return names

    def _time(self) -> str | None:
        if self._random.random() < 0.4:
            return None
        seconds = datetime.timedelta(seconds=self._random.randrange(10**9))
        return f'{(datetime.datetime(2016, 1, 1) + seconds).isoformat()}Z'

    def _amount(self, least: int = 1) -> int:
        return self._random.choice((least, 7, 64, self._random.randint(1, 10**6), 2**31 - 1))

    def _ratio(self) -> float:
        number = self._random.choice((1.0, 16.0, 0.7, self._random.uniform(-9, 9), 1e6, 3.4e38))
        return float(f'{number:.6g}')

    def _custom(self) -> list[str]:
        return [f'CUSTOM_{letter}_{self._random.randint(0, 9)}' for letter in 'AMZ']

    def _uuids(self, most: int) -> list[str]:
        # A bit more than one in ten is written in upper case.
        count = self._random.randint(0, most)
        uuids = [str(uuid.UUID(int=self._random.getrandbits(128))) for _ in range(count)]
        return sorted(u.upper() if self._random.random() < 0.1 else u for u in uuids)

    def _names(self) -> list[str]:
        starts = self._random.sample(_STARTS, self._random.randint(1, 6))
        return [f'{start}{n}{self._random.choice(_ODD)}' for n, start in enumerate(starts)]

    def _tree(self) -> list[str]:
        """Add providers, parents before children and each level sorted; return all UUIDs."""
        levels: list[list[str]] = [[]]
        while len(levels) < 5 and (levels[-1] or len(levels) == 1):
            levels.append(self._uuids(5))
            for one in levels[-1]:
                # The name of a provider can be null.
                name = f'host {one}{self._random.choice(_ODD)}'
                name = None if self._random.random() < 0.1 else name
                generation = self._random.choice((0, 1, 99, 2**31 - 1))
                parent = self._random.choice(levels[-2]) if levels[-2] else None
                self._add('provider', one, name, generation, parent)
        return sorted(itertools.chain(*levels))

    def _pairs(self, ones: list[str], others: list[str]) -> Iterator[tuple[str, str]]:
        for one in ones:
            count = min(len(others), self._random.randint(0, 3))
            yield from ((one, other) for other in sorted(self._random.sample(others, count)))
