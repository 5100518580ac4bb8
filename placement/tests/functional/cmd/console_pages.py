"""The commands of pages of the documentation and their output, executed on the demo cloud.

A block `.. code-block:: console` of a page contains commands and their output. Each line that
starts with `$ ` is a command, and lines that start with `> ` continue it. The lines until the next
command are what the command writes to standard output and standard error. A line `...` stands for
any number of lines. Blanks at the end of a line and empty lines at the end of an output do not
matter. All blocks of a page run in the same shell, in the order of the page, in an
empty directory. The database is the demo cloud of tools/demo.py.

The pages in `RUNBOOKS` are different: the database of each of them is the one that `runbook_cloud`
prepares. Their blocks `.. code-block:: shell` contain commands of Nova and of its client, without
their output. Stand-ins execute them, and must succeed.
"""

from collections.abc import Iterator, Sequence
import contextlib
from dataclasses import dataclass
import functools
import os
from pathlib import Path
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap

import placement
from placement.tests.functional import forked, programs
from placement.tests.functional.cmd import runbook_cloud

ROOT = Path(placement.__file__).parents[1]
FOLDER = ROOT / 'doc' / 'source' / 'admin'
# The pages with commands for the demo cloud.
PAGES = (
    *('no-valid-host', 'take-host-down', 'capacity-left'),
    *('capacity', 'audit', 'export-import', 'monitoring'),
)
RUNBOOKS = tuple(runbook_cloud.STATES)
ANY_LINES = '...'
# The languages of the blocks whose commands are executed.
CONSOLE, SHELL = 'console', 'shell'

_DIRECTIVE = re.compile(r'([ *\d.-]*)\.\. code-block:: (\w+) *$')
_COMMAND, _CONTINUATION = '$ ', '> '
# Separates the outputs of commands; followed by the number of the command.
_MARK = '-- placement-console-page '
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a page, and its output.

    :ivar line: the number of the first line of the command in the page, from 1
    :ivar indent: the indentation of the block
    """

    line: int
    indent: str
    command: tuple[str, ...]
    output: tuple[str, ...]

    @property
    def shell(self) -> str:
        """The command as a shell reads it."""
        first, *others = self.command
        return '\n'.join([first.removeprefix(_COMMAND), *(_continued(line) for line in others)])


def _continued(line: str) -> str:
    return line.removeprefix(_CONTINUATION)


def examples(text: str, languages: Sequence[str] = (CONSOLE,)) -> Iterator[Example]:
    """Yield the commands of all blocks of a page in these languages."""
    for first, language, lines in _blocks(text.splitlines()):
        if language not in languages:
            continue
        indent = re.match(' *', lines[0])[0]
        block = textwrap.dedent('\n'.join(lines)).splitlines()
        read = _examples if language == CONSOLE else _examples_without_output
        yield from read(first, indent, block)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the number of the first line of each block, from 1, its language, and its lines."""
    position = 0
    while position < len(lines):
        directive = _DIRECTIVE.match(lines[position])
        position += 1
        if directive is None:
            continue
        outside = len(directive[1])
        start = position
        while position < len(lines) and _is_inside(lines[position], outside):
            position += 1
        block = list(lines[start:position])
        # Options of the directive end with an empty line.
        while block and (not block[0].strip() or block[0].strip().startswith(':')):
            del block[0]
            start += 1
        while block and not block[-1].strip():
            del block[-1]
        if block:
            yield start + 1, directive[2], block


def _is_inside(line: str, outside: int) -> bool:
    return not line.strip() or len(line) - len(line.lstrip()) > outside


def _examples(first: int, indent: str, lines: Sequence[str]) -> Iterator[Example]:
    starts = [number for number, line in enumerate(lines) if line.startswith(_COMMAND)]
    if not starts or starts[0] != 0:
        raise ValueError(f'line {first}: the block does not start with "{_COMMAND}"')
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        output = start + 1
        while output < end and lines[output].startswith(_CONTINUATION):
            output += 1
        yield Example(first + start, indent, tuple(lines[start:output]), _shown(lines[output:end]))


def _examples_without_output(first: int, indent: str, lines: Sequence[str]) -> Iterator[Example]:
    start = 0
    for end, line in enumerate(lines, 1):
        if not line.endswith('\\'):
            command = (f'{_COMMAND}{lines[start]}', *lines[start + 1 : end])
            yield Example(first + start, indent, command, (ANY_LINES,))
            start = end


def _shown(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines without blanks at their ends and without empty lines at the end."""
    return tuple('\n'.join(line.rstrip() for line in lines).rstrip('\n').splitlines())


def matches(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether the lines are equal; an expected line `...` stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0] == ANY_LINES:
        return any(matches(expected[1:], actual[start:]) for start in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and matches(expected[1:], actual[1:])


class Session:
    """A directory with a database, and a shell in which `placement-manage` uses it.

    :param folder: an empty directory
    :param runbook: the page in `RUNBOOKS` whose state the database has; None for the demo cloud
    :ivar languages: the languages of the blocks whose commands the shell can execute
    """

    def __init__(self, folder: Path, runbook: str | None = None) -> None:
        self._cwd = folder / 'work'
        self._programs = folder / 'bin'
        self._failed = folder / 'failed'
        for created in (self._cwd, self._programs):
            created.mkdir()
        for name in ('manage', 'status'):
            self._add_program(f'placement-{name}', f'placement.cmd.{name}')
        self._database = folder / 'placement.db'
        path = os.pathsep.join((str(self._programs), os.environ['PATH']))
        self._variables = _variables(self._database) | {'PATH': path}
        self.languages: Sequence[str] = (CONSOLE,)
        if runbook is None:
            self._database.write_bytes(_demo_cloud())
        else:
            self.languages = (CONSOLE, SHELL)
            self._prepare(folder, runbook)

    def _prepare(self, folder: Path, runbook: str) -> None:
        module = runbook_cloud.__name__
        self._variables[runbook_cloud.NOVA] = str(folder / 'nova.json')
        log = f'{runbook_cloud.LOG}={folder / "placement.log"}'
        for name in runbook_cloud.PROGRAMS:
            self._add_program(name, f'{module} {name}', log)
        variables = dict([log.split('=')], OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP='true')
        done = programs.shared().run(
            ('-m', module), ('prepare', runbook), {**self._variables, **variables}
        )
        if done.status:
            raise AssertionError(f'The cloud of the runbook {runbook} fails: {done.stderr}')

    def _add_program(self, name: str, module: str, *variables: str) -> None:
        """Add a program that forks a process; the names of failed stand-ins are collected."""
        words = (*variables, sys.executable, '-IS', forked.__file__, programs.shared().socket)
        command = f'{" ".join(map(str, words))} -m {module} "$@"'
        if variables:
            command += f' || {{ echo "{name} $*" >> {self._failed}; exit 1; }}'
        program = self._programs / name
        program.write_text(f'#!/bin/sh\n{command}\n')
        program.chmod(0o755)

    def stored_and_expected(self) -> tuple[runbook_cloud.Contents, runbook_cloud.Contents]:
        """Return what the database of a runbook contains, and what follows from Nova."""
        nova = runbook_cloud.read_nova(Path(self._variables[runbook_cloud.NOVA]))
        return runbook_cloud.stored(self._database), nova.expected()

    def outputs(self, commands: Sequence[str]) -> list[tuple[str, ...]]:
        """Execute commands in one shell and return the lines that each of them writes."""
        # The exit status of the command is available to the next one.
        script = ''.join(
            f'{command}\n_status=$?; printf "\\n%s%s\\n" "{_MARK}" {number}; (exit $_status)\n'
            for number, command in enumerate(commands)
        )
        path = self._cwd.parent / 'script'
        path.write_text(script)
        rest = self._execute('bash', '--norc', str(path))
        results = []
        for number, command in enumerate(commands):
            output, mark, rest = rest.partition(f'\n{_MARK}{number}\n')
            if not mark:
                raise AssertionError(f'The shell ended in the command {command!r}: {output}')
            results.append(_shown(output.splitlines()))
        if self._failed.exists():
            texts = ('\n'.join(result) for result in results)
            raise AssertionError('\n'.join([self._failed.read_text(), *texts]))
        return results

    def _execute(self, *command: str) -> str:
        return _execute(self._cwd, self._variables, *command)


def _variables(database: Path) -> dict[str, str]:
    """Return the environment variables of commands that use a database."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    return variables | {
        'PYTHONPATH': str(ROOT),
        'COLUMNS': '100',
        'LC_ALL': 'C.UTF-8',
        # The measurement of the test coverage would take half of the time.
        'COVERAGE_PROCESS_START': '',
        'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{database}',
    }


@functools.cache
def _demo_cloud() -> bytes:
    """Return a database with the demo cloud. Its registration takes seconds."""
    with tempfile.TemporaryDirectory(prefix='placement-demo-') as folder:
        database = Path(folder) / 'placement.db'
        programs.shared().start(programs.DEMO, _variables(database)).wait()
        with contextlib.closing(sqlite3.connect(database)) as connection:
            # The database uses a write-ahead log.
            connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        return database.read_bytes()


def _execute(cwd: Path, variables: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
    )
    return done.stdout


def updated(text: str, session: Session) -> str:
    """Return a page with the actual output in place of each output that differs."""
    found = list(examples(text, session.languages))
    lines = text.splitlines()
    outputs = session.outputs([example.shell for example in found])
    # From the end, so that the numbers of the lines before remain valid.
    for example, output in reversed(list(zip(found, outputs, strict=True))):
        if not matches(example.output, output):
            start = example.line - 1 + len(example.command)
            end = start + len(example.output)
            lines[start:end] = [(example.indent + line).rstrip() for line in output]
    return '\n'.join(lines) + '\n'
