"""The codes of the audit and the data classes of its results."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from placement.admin.failure import CannotProceedError

ERROR, NOTICE = 'error', 'notice'

# The keys of a row are readable names. The values are texts, numbers, lists or None.
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding.

    :param meaning: what the audit has found, for the table
    :param severity: `ERROR`, or `NOTICE` if the data is legal
    """

    name: str
    meaning: str
    severity: str = ERROR


ORPHAN_ALLOCATION = 'orphan-allocation'
ORPHAN_PROVIDER = 'orphan-provider'
UNKNOWN_CLASS = 'unknown-class'
NO_INVENTORY = 'no-inventory'
OVER_CAPACITY = 'over-capacity'
IDLE_CONSUMER = 'idle-consumer'
INCOMPLETE_CONSUMER = 'incomplete-consumer'
OWNER_MISSING = 'owner-missing'
SEVERAL_TREES = 'several-trees'
NO_SERVER = 'no-server'
NO_ALLOCATIONS = 'no-allocations'
ROOT_MISSING = 'root-missing'
PARENT_MISSING = 'parent-missing'
PARENT_CYCLE = 'parent-cycle'
NULL_GENERATION = 'null-generation'
DUPLICATE_NAME = 'duplicate-name'
UNUSED = 'unused'

# The codes, in the order of the report.
CODES: tuple[Code, ...] = (
    Code(ORPHAN_ALLOCATION, 'allocations whose consumer does not exist'),
    Code(ORPHAN_PROVIDER, 'rows of providers that do not exist'),
    Code(UNKNOWN_CLASS, 'inventories and allocations of resource classes that do not exist'),
    Code(NO_INVENTORY, 'allocations of a class that the provider has no inventory of'),
    Code(OVER_CAPACITY, 'inventories whose usage exceeds their capacity', NOTICE),
    Code(IDLE_CONSUMER, 'consumers without allocations'),
    Code(INCOMPLETE_CONSUMER, 'consumers owned by the incomplete-consumer project', NOTICE),
    Code(OWNER_MISSING, 'consumers whose project, user or type does not exist'),
    Code(SEVERAL_TREES, 'instances with allocations of a class in several trees', NOTICE),
    Code(NO_SERVER, 'consumers that are neither a server nor a migration', NOTICE),
    Code(NO_ALLOCATIONS, 'servers without allocations', NOTICE),
    Code(ROOT_MISSING, 'providers without a root, or with the wrong root'),
    Code(PARENT_MISSING, 'providers whose parent does not exist'),
    Code(PARENT_CYCLE, 'providers that are their own ancestors'),
    Code(NULL_GENERATION, 'providers and consumers without a generation'),
    Code(DUPLICATE_NAME, 'names and UUIDs that differ only in letter case', NOTICE),
    Code(UNUSED, 'projects, users, consumer types and aggregates without a reference', NOTICE),
)
NAMES: tuple[str, ...] = tuple(code.name for code in CODES)


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one check.

    :param count: the number of findings
    :param rows: the first of them
    """

    count: int = 0
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A row that the audit changed.

    :param identity: names that identify the row
    :param before: the changed columns, or all columns of a deleted row; None if the row is new
    :param after: the same columns after the change; None if the row was deleted
    :param corrected: the number of findings that the change corrected
    """

    code: str
    identity: Row
    before: Row | None
    after: Row | None
    corrected: int = 1

    def as_row(self) -> Row:
        """Return the change as a row of a finding."""
        return {**self.identity, 'before': self.before, 'after': self.after}


@dataclass(frozen=True, slots=True)
class Finding:
    """All findings of one code.

    :param code: a name in `NAMES`
    :param severity: `ERROR` or `NOTICE`
    :param count: the number of findings, including those that were corrected
    :param fixed: the number of findings that were corrected
    :param rows: every changed row, and the first rows that were not changed
    """

    code: str
    severity: str
    count: int
    fixed: int = 0
    rows: tuple[Row, ...] = field(default=())

    @property
    def left(self) -> int:
        """The number of findings that were not corrected."""
        return self.count - self.fixed


def select_codes(only: Collection[str] | None) -> tuple[str, ...]:
    """Return the requested codes in the order of the report; None requests all codes.

    :raises CannotProceedError: a requested code does not exist
    """
    if only is None:
        return NAMES
    unknown = sorted(set(only) - set(NAMES))
    if unknown:
        names = ', '.join(f"'{name}'" for name in unknown)
        raise CannotProceedError(f'Unknown code {names}; the codes are {", ".join(NAMES)}.')
    return tuple(name for name in NAMES if name in only)


def assemble(
    found: Mapping[str, Found], changes: Iterable[Change] = (), row_limit: int = 100
) -> tuple[Finding, ...]:
    """Return the findings in the order of the report, without codes that have no finding.

    :param found: the findings that exist after the changes, keyed by code
    :param row_limit: the maximum number of rows of each code that were not changed
    """
    changed: dict[str, list[Change]] = {}
    for change in changes:
        changed.setdefault(change.code, []).append(change)
    findings = []
    for code in CODES:
        remaining, own = found.get(code.name, Found()), changed.get(code.name, ())
        fixed = sum(change.corrected for change in own)
        rows = (*(change.as_row() for change in own), *remaining.rows[:row_limit])
        if remaining.count + fixed:
            findings.append(Finding(code.name, code.severity, remaining.count + fixed, fixed, rows))
    return tuple(findings)


def exit_status(findings: Iterable[Finding]) -> int:
    """Return the exit status of the command: 1 if errors are left, otherwise 0."""
    return int(any(finding.severity == ERROR and finding.left for finding in findings))
