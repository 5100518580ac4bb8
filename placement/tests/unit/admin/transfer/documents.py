"""Files of exports for tests, written independently of the code that reads and writes files."""

from collections.abc import Callable, Iterable, Iterator
import datetime
import json
import random
from typing import Any
import uuid

REVISION = 'a082b8bb98d0'
KINDS = (
    'resource_class',
    'trait',
    'aggregate',
    'provider',
    'inventory',
    'provider_trait',
    'provider_aggregate',
    'consumer_type',
    'project',
    'user',
    'consumer',
    'allocation',
)
TIMES = {'created_at': '2026-01-02T03:04:05Z', 'updated_at': None}
CHANGED = {'created_at': '2026-01-02T03:04:05Z', 'updated_at': '2026-02-03T04:05:06Z'}
HOST, DEVICE, POOL, AGGREGATE, CONSUMER, OTHER = (
    f'{digit}0000000-0000-4000-8000-000000000000' for digit in 'abcdef'
)
AMOUNTS = {'reserved': 0, 'min_unit': 1, 'max_unit': 64, 'step_size': 1, 'allocation_ratio': 1.5}

Row = dict[str, Any]

# A cloud with all kinds of rows, in the order of a file.
EXAMPLE: tuple[Row, ...] = (
    {'kind': 'resource_class', 'name': 'CUSTOM_GPU', **TIMES},
    {'kind': 'resource_class', 'name': 'VCPU', **TIMES},
    {'kind': 'trait', 'name': 'CUSTOM_FAST', **TIMES},
    {'kind': 'trait', 'name': 'HW_CPU_X86_AVX2', **TIMES},
    {'kind': 'aggregate', 'uuid': AGGREGATE, **TIMES},
    {
        'kind': 'provider',
        'uuid': HOST,
        'name': 'host "1" \N{GRINNING FACE}',
        'generation': 3,
        'parent': None,
        **CHANGED,
    },
    {'kind': 'provider', 'uuid': POOL, 'name': 'pool', 'generation': 1, 'parent': None, **TIMES},
    {'kind': 'provider', 'uuid': DEVICE, 'name': 'gpu', 'generation': 0, 'parent': HOST, **TIMES},
    {
        'kind': 'inventory',
        'provider': HOST,
        'resource_class': 'VCPU',
        'total': 64,
        **AMOUNTS,
        **CHANGED,
    },
    {
        'kind': 'inventory',
        'provider': DEVICE,
        'resource_class': 'CUSTOM_GPU',
        'total': 1,
        **AMOUNTS,
        **TIMES,
    },
    {'kind': 'provider_trait', 'provider': HOST, 'trait': 'CUSTOM_FAST', **TIMES},
    {'kind': 'provider_trait', 'provider': HOST, 'trait': 'HW_CPU_X86_AVX2', **TIMES},
    {'kind': 'provider_aggregate', 'provider': POOL, 'aggregate': AGGREGATE, **TIMES},
    {'kind': 'consumer_type', 'name': 'INSTANCE', **TIMES},
    {'kind': 'project', 'external_id': 'project-1', **TIMES},
    {'kind': 'user', 'external_id': 'user-1', **TIMES},
    {'kind': 'user', 'external_id': 'user-2', **TIMES},
    {
        'kind': 'consumer',
        'uuid': CONSUMER,
        'generation': 1,
        'project': 'project-1',
        'user': 'user-1',
        'consumer_type': 'INSTANCE',
        **CHANGED,
    },
    {
        'kind': 'consumer',
        'uuid': OTHER,
        'generation': 2,
        'project': 'project-1',
        'user': 'user-2',
        'consumer_type': None,
        **TIMES,
    },
    {
        'kind': 'allocation',
        'consumer': CONSUMER,
        'provider': HOST,
        'resource_class': 'VCPU',
        'used': 4,
        **TIMES,
    },
    {
        'kind': 'allocation',
        'consumer': CONSUMER,
        'provider': DEVICE,
        'resource_class': 'CUSTOM_GPU',
        'used': 1,
        **TIMES,
    },
    {
        'kind': 'allocation',
        'consumer': OTHER,
        'provider': HOST,
        'resource_class': 'VCPU',
        'used': 8,
        **TIMES,
    },
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


def number_of(documents: Documents, kind: str, which: int = 0) -> int:
    """The number of a line of a kind; 0 is the first line of this kind."""
    lines = [n for n, one in enumerate(documents, 1) if n > 1 and one['kind'] == kind]
    return lines[which]


def change(kind: str, which: int = 0, /, **values: Any) -> Edit:
    """Set fields of a line."""

    def edit(documents: Documents) -> int:
        number = number_of(documents, kind, which)
        documents[number - 1] = {**documents[number - 1], **values}
        return number

    return edit


def change_header(**values: Any) -> Edit:
    """Set fields of the first line."""

    def edit(documents: Documents) -> int:
        documents[0] = {**documents[0], **values}
        return 1

    return edit


def replace(kind: str, old: bytes, new: bytes, which: int = 0) -> Edit:
    """Replace a part of the text of a line."""

    def edit(documents: Documents) -> int:
        number = number_of(documents, kind, which)
        text = text_of([documents[number - 1]])
        assert old in text, text
        documents[number - 1] = text.replace(old, new)
        return number

    return edit


def insert(kind: str, which: int, line: Any) -> Edit:
    """Insert a line before another one, without counting it."""

    def edit(documents: Documents) -> int:
        number = number_of(documents, kind, which)
        documents.insert(number - 1, line)
        return number

    return edit


def remove_field(kind: str, name: str) -> Edit:
    def edit(documents: Documents) -> int:
        number = number_of(documents, kind)
        documents[number - 1] = {k: v for k, v in documents[number - 1].items() if k != name}
        return number

    return edit


def remove(kind: str, which: int = 0, counted: bool = False, used_by: str = '') -> Edit:
    """Remove the last line of a kind; the invalid line is the next one.

    :param counted: whether the number of lines in the first line changes too
    :param used_by: the kind of the first line that refers to the removed line
    """

    def edit(documents: Documents) -> int:
        number = number_of(documents, kind, which)
        del documents[number - 1]
        if counted:
            documents[0] = header(documents[1:])
        return number_of(documents, used_by) if used_by else number

    return edit


def repeat(kind: str, which: int = 0, /, **values: Any) -> Edit:
    """Insert a changed copy of a line after it, and count it."""

    def edit(documents: Documents) -> int:
        number = number_of(documents, kind, which)
        documents.insert(number, {**documents[number - 1], **values})
        documents[0] = header(documents[1:])
        return number + 1

    return edit


def swap(kind: str, which: int) -> Edit:
    """Swap a line with the next one."""

    def edit(documents: Documents) -> int:
        number = number_of(documents, kind, which)
        documents[number - 1 : number + 1] = documents[number - 1 : number + 1][::-1]
        return number + 1

    return edit


def edited(edit: Edit) -> tuple[bytes, int]:
    """The example after an edit, and the number of the invalid line."""
    documents: Documents = [header(EXAMPLE), *EXAMPLE]
    number = edit(documents)
    return text_of(documents), number


# Name of the mistake, the edit, and a part of the message. The lines themselves are not valid.
INVALID: tuple[tuple[str, Edit, str], ...] = (
    ('another document', change_header(format='other'), 'not an export'),
    ('no version', change_header(version='1'), 'version'),
    ('version 0', change_header(version=0), 'version'),
    ('a newer format', change_header(version=2), 'newer release'),
    ('a newer format with other fields', change_header(version=2, more=1), 'newer release'),
    ('an unknown field of the header', change_header(more=1), "'more' is unknown"),
    ('a wrong revision', change_header(schema_revision=1), 'schema_revision'),
    ('counts of unknown kinds', change_header(counts={'provider': 1}), 'counts'),
    ('counts that are no object', change_header(counts=3), 'counts'),
    ('negative counts', change_header(counts=dict.fromkeys(KINDS, -1)), 'counts'),
    ('counts that are text', change_header(counts=dict.fromkeys(KINDS, '1')), 'counts'),
    ('an unknown kind', change('trait', kind='color'), "kind 'color' is unknown"),
    ('a kind that is no text', change('trait', kind=['trait']), 'is unknown'),
    ('no kind', remove_field('trait', 'kind'), 'kind None is unknown'),
    ('an unknown field', change('trait', color=1), "'color' is unknown"),
    ('a missing field', remove_field('inventory', 'total'), 'total is missing'),
    ('a missing time', remove_field('inventory', 'updated_at'), 'updated_at is missing'),
    ('a name that is a number', change('project', external_id=7), 'must be a string'),
    ('a name that is null', change('user', external_id=None), 'must be a string'),
    ('a name that is too long', change('provider', name='n' * 201), 'longer than 200'),
    ('a UUID that is too long', change('aggregate', uuid='u' * 37), 'longer than 36'),
    ('a number that is text', change('inventory', total='64'), 'must be an integer'),
    ('a number that is a fraction', change('inventory', total=64.0), 'must be an integer'),
    ('a number that is true', change('allocation', used=True), 'must be an integer'),
    ('a number that is null', change('consumer', generation=None), 'must be an integer'),
    ('a number above 2**31 - 1', change('inventory', max_unit=2**31), 'from 1 to 2147483647'),
    ('a number with many digits', replace('inventory', b':64,', b':' + b'9' * 5000 + b','), ''),
    ('a total of 0', change('inventory', total=0), 'from 1 to'),
    ('a step of 0', change('inventory', step_size=0), 'from 1 to'),
    ('a negative amount', change('allocation', used=-1), 'from 1 to'),
    ('a negative reservation', change('inventory', reserved=-1), 'from 0 to'),
    ('a negative generation', change('provider', generation=-1), 'from 0 to'),
    ('a ratio that is text', change('inventory', allocation_ratio='1.0'), 'must be a number'),
    ('a ratio that is null', change('inventory', allocation_ratio=None), 'must be a number'),
    ('a ratio that is too large', change('inventory', allocation_ratio=3.5e38), 'from -3.4'),
    ('a ratio beyond all limits', replace('inventory', b':1.5,', b':1e999,'), 'from -3.4'),
    ('a ratio of many digits', change('inventory', allocation_ratio=10**400), 'from -3.4'),
    ('a ratio that is not a number', replace('inventory', b':1.5,', b':NaN,'), 'JSON'),
    ('an infinite ratio', replace('inventory', b':1.5,', b':-Infinity,'), 'JSON'),
    ('a time without seconds', change('trait', created_at='2026-01-02T03:04Z'), 'time like'),
    ('a time with fractions', change('trait', created_at='2026-01-02T03:04:05.5Z'), 'time like'),
    ('a time in another zone', change('trait', created_at='2026-01-02T03:04:05+01:00'), ''),
    ('a time with a week', change('trait', created_at='2026-W01-1T03:04:05Z'), 'time like'),
    ('a day that does not exist', change('trait', created_at='2026-02-30T03:04:05Z'), 'time like'),
    ('a time that is a number', change('trait', updated_at=1767323045), 'must be a string or null'),
    ('a field that occurs twice', replace('project', b'{', b'{"kind":"user",'), 'occurs twice'),
    ('an empty line', insert('project', 0, b'\n'), 'JSON'),
    ('a line that is no JSON', insert('project', 0, b'{"kind":\n'), 'JSON'),
    ('a line that is a list', insert('project', 0, b'["kind"]\n'), 'not a JSON object'),
    ('a deep line', insert('project', 0, b'[' * 60000 + b'\n'), 'JSON'),
    ('a long line', insert('project', 0, b'[' + b' ' * 70000 + b']\n'), 'longer than 65536'),
    ('Latin-1', replace('project', b'project-1', b'proj\xe9t'), 'UTF-8'),
    ('half a character', replace('project', b'project-1', rb'\ud83d'), 'surrogate'),
    ('a key that is repeated', repeat('project'), 'same key'),
    ('an allocation twice', repeat('allocation', 1, used=7), 'same key'),
    ('a trait of a provider twice', repeat('provider_trait'), 'same key'),
    ('a consumer twice', repeat('consumer', 1, generation=7), 'same key'),
    ('lines in another order', swap('user', 0), 'not in order'),
    ('allocations in another order', swap('allocation', 0), 'not in order'),
    ('a missing line', remove('user', 1), 'states 2 of the kind user, but the file has 1'),
    ('a missing kind', remove('project'), 'states 1 of the kind project, but the file has 0'),
    ('a missing last line', remove('allocation', -1), 'of the kind allocation, but the file has 2'),
    (
        'one line too many',
        insert('user', 0, {'kind': 'project', 'external_id': 'project-2', **TIMES}),
        'states only 1 of the kind project',
    ),
    (
        'kinds in another order',
        insert('consumer', 0, {'kind': 'project', 'external_id': 'project-2', **TIMES}),
        'cannot follow',
    ),
)
# The lines refer to missing rows, or violate unique keys.
INCONSISTENT: tuple[tuple[str, Edit, str], ...] = (
    ('an unknown revision', change_header(schema_revision='ffffffffffff'), 'ffffffffffff'),
    ('a provider twice', repeat('provider', 0, name='other'), 'equal to'),
    ('a provider twice, not in a row', repeat('provider', 2, uuid=HOST, name='other'), 'equal to'),
    ('a name of two providers', change('provider', 1, name=EXAMPLE[5]['name']), 'equal to'),
    ('an unknown parent', change('provider', 2, parent=OTHER), f"the provider '{OTHER}'"),
    ('a provider that is its own parent', change('provider', 2, parent=DEVICE), 'provider'),
    ('a child before its parent', change('provider', 0, parent=POOL), 'provider'),
    ('an inventory of nothing', change('inventory', 1, provider=OTHER), 'the provider'),
    ('an inventory of an unknown class', change('inventory', 0, resource_class='LIGHT'), "'LIGHT'"),
    ('an unlisted standard class', change('inventory', 0, resource_class='DISK_GB'), "'DISK_GB'"),
    ('an unlisted trait', change('provider_trait', 1, trait='HW_NIC_SRIOV'), "'HW_NIC_SRIOV'"),
    ('an unknown aggregate', change('provider_aggregate', aggregate=OTHER), 'the aggregate'),
    ('an unknown project', change('consumer', 0, project='project-2'), "project 'project-2'"),
    ('an unknown user', change('consumer', 1, user='USER-2'), "user 'USER-2'"),
    ('an unknown type', change('consumer', 1, consumer_type='MIGRATION'), "'MIGRATION'"),
    ('an allocation of nobody', change('allocation', 2, consumer=OTHER[:-1] + '1'), 'consumer'),
    ('an allocation of nothing', change('allocation', 2, provider=OTHER), 'the provider'),
    ('an unknown class in use', change('allocation', 2, resource_class='WWW'), "'WWW'"),
    ('an unknown standard class', change('resource_class', 1, name='ZEBRA'), 'os-resource-classes'),
    ('a removed trait', remove('trait', 0, True, 'provider_trait'), "trait 'CUSTOM_FAST'"),
    ('a removed consumer', remove('consumer', 0, True, 'allocation'), f"consumer '{CONSUMER}'"),
)


# Random files -------------------------------------------------------------------

# They start with different characters, so that they are different in every collation. The order of
# code points is not the order of any collation, and not the order of UTF-16.
_STARTS = ('0', 'B', 'Zoo', '_', 'ant', 'x\t', 'y', '\xe9', '\u4f60', '\uffee', '\U0001f600')
_ODD = ('', ' "quoted"', '\\', ' \N{GRINNING FACE}', '\u2028', '\x85', '\x1f', " o'", ' %s {}')


def random_rows(seed: int) -> list[Row]:
    """The rows of a random cloud with up to 20 providers and 30 consumers."""
    return list(_Cloud(random.Random(seed)).rows())


class _Cloud:
    """Draws the rows of a cloud."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self.classes = sorted({'VCPU', 'PCPU', 'VGPU', *self._custom()})
        self.traits = sorted({'HW_NUMA_ROOT', 'NO_LONGER_IN_THE_LIBRARY', *self._custom()})
        self.aggregates = self._uuids(4)
        self.providers = self._tree()
        self.types = sorted(source.sample(('INSTANCE', 'MIGRATION', 'A_B'), source.randint(1, 3)))
        self.projects = sorted(self._names(source.randint(1, 6)))
        self.users = sorted(self._names(source.randint(1, 6)))
        self.consumers = self._uuids(30) if self.providers else []

    def rows(self) -> Iterator[Row]:
        for kind, field, values in (
            ('resource_class', 'name', self.classes),
            ('trait', 'name', self.traits),
            ('aggregate', 'uuid', self.aggregates),
        ):
            yield from (self._row(kind, **{field: value}) for value in values)
        yield from self.providers
        uuids = sorted(provider['uuid'] for provider in self.providers)
        yield from self._inventories(uuids)
        for name, values in (('trait', self.traits), ('aggregate', self.aggregates)):
            for provider, value in self._pairs(uuids, values):
                yield self._row(f'provider_{name}', provider=provider, **{name: value})
        for kind, field, values in (
            ('consumer_type', 'name', self.types),
            ('project', 'external_id', self.projects),
            ('user', 'external_id', self.users),
        ):
            yield from (self._row(kind, **{field: value}) for value in values)
        yield from (self._consumer(consumer) for consumer in self.consumers)
        for consumer, provider in self._pairs(self.consumers, uuids):
            for name in sorted(self._random.sample(self.classes, self._random.randint(1, 2))):
                yield self._row(
                    'allocation',
                    consumer=consumer,
                    provider=provider,
                    resource_class=name,
                    used=self._amount(),
                )

    def _row(self, kind: str, **values: Any) -> Row:
        times = {'created_at': self._time(), 'updated_at': self._time()}
        return {'kind': kind, **values, **times}

    def _time(self) -> str | None:
        if self._random.random() < 0.4:
            return None
        time = datetime.datetime(2016, 1, 1) + datetime.timedelta(
            seconds=self._random.randrange(10**9)
        )
        return f'{time.isoformat()}Z'

    def _amount(self, least: int = 1) -> int:
        return self._random.choice((least, 7, 64, self._random.randint(1, 10**6), 2**31 - 1))

    def _custom(self) -> list[str]:
        return [f'CUSTOM_{letter}_{self._random.randint(0, 9)}' for letter in 'AMZ']

    def _uuids(self, most: int) -> list[str]:
        # A bit more than one in ten is written in upper case.
        uuids = {
            str(uuid.UUID(int=self._random.getrandbits(128)))
            for _ in range(self._random.randint(0, most))
        }
        return sorted(u.upper() if self._random.random() < 0.1 else u for u in uuids)

    def _names(self, count: int) -> list[str]:
        starts = self._random.sample(_STARTS, count)
        return [f'{start}{n}{self._random.choice(_ODD)}' for n, start in enumerate(starts)]

    def _tree(self) -> list[Row]:
        """The providers, parents before children and each level sorted by UUID."""
        level: list[str] = []
        result: list[Row] = []
        # The name of a provider can be null.
        names: list[str | None] = [f'host {n}{self._random.choice(_ODD)}' for n in range(80)]
        for _ in range(4):
            uuids = self._uuids(5)
            if result and not level:
                break
            for one in uuids:
                parent = self._random.choice(level) if level else None
                result.append(
                    self._row(
                        'provider',
                        uuid=one,
                        name=None if self._random.random() < 0.1 else names.pop(),
                        generation=self._random.choice((0, 1, 99, 2**31 - 1)),
                        parent=parent,
                    )
                )
            level = uuids
        return result

    def _pairs(self, ones: list[str], others: list[str]) -> Iterator[tuple[str, str]]:
        for one in ones:
            count = min(len(others), self._random.randint(0, 3))
            yield from ((one, other) for other in sorted(self._random.sample(others, count)))

    def _inventories(self, providers: list[str]) -> Iterator[Row]:
        for provider, name in self._pairs(providers, self.classes):
            yield self._row(
                'inventory',
                provider=provider,
                resource_class=name,
                total=self._amount(),
                reserved=self._amount(0),
                min_unit=self._amount(),
                max_unit=self._amount(),
                step_size=self._amount(),
                allocation_ratio=self._ratio(),
            )

    def _ratio(self) -> float:
        number = self._random.choice((1.0, 16.0, 0.7, self._random.uniform(-9, 9), 1e6, 3.4e38))
        return float(f'{number:.6g}')

    def _consumer(self, consumer: str) -> Row:
        return self._row(
            'consumer',
            uuid=consumer,
            generation=self._amount(0),
            project=self._random.choice(self.projects),
            user=self._random.choice(self.users),
            consumer_type=self._random.choice([*self.types, None]),
        )
