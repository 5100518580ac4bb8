"""Makes a mistake and executes a program."""

from collections.abc import Sequence
from pathlib import Path
import re
import socket
import tempfile

from oslotest import base
import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.tests.functional import programs
from placement.tests.functional.mistakes.catalog import Mistake

HEAD = 'a082b8bb98d0'


def create_database(path: Path, revision: str) -> str:
    """Create a SQLite database with all tables and a revision; return its URL."""
    url = f'sqlite:///{path}'
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    models.metadata.create_all(engine)
    with engine.begin() as conn:
        conn.execute(sa.text('CREATE TABLE alembic_version (version_num VARCHAR(32))'))
        conn.execute(
            sa.text('INSERT INTO alembic_version VALUES (:revision)'), {'revision': revision}
        )
    return url


def pattern(report: str) -> re.Pattern[str]:
    """Return a pattern for a report, in which `...` stands for any text."""
    return re.compile(re.escape(report).replace(re.escape('...'), '.+'))


class TestCase(base.BaseTestCase):
    """Executes programs with the configuration of a mistake."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.databases = Path(folder.name)
        self.values = {
            'migrated': create_database(self.databases / 'migrated.db', HEAD),
            'older': create_database(self.databases / 'older.db', '422ece571366'),
            'stamped': create_database(self.databases / 'stamped.db', 'b5c396305c25'),
            'newer': create_database(self.databases / 'newer.db', 'deadbeef0000'),
        }
        # A port that is bound and does not listen rejects connections.
        probe = socket.socket()
        self.addCleanup(probe.close)
        probe.bind(('127.0.0.1', 0))
        self.values['port'] = str(probe.getsockname()[1])

    def make(
        self,
        mistake: Mistake,
        program: str,
        debug: bool = False,
        command: Sequence[str] | None = None,
    ) -> programs.Result:
        """Make a mistake and execute a program.

        :param debug: with `--debug`, and for the service with the option `debug`
        :param command: the command of the program, instead of that of the mistake; its arguments
            contain the same names in braces
        """
        with tempfile.TemporaryDirectory() as folder:
            values = self.values | {'folder': folder}
            for name, text in self.files(mistake, program, debug).items():
                (Path(folder) / name).write_text(replaced(text, values))
            arguments: list[str] = []
            if program != programs.SERVICE:
                arguments += [replaced(option, values) for option in mistake.options]
                arguments += ['--debug'] if debug else []
                usual = (
                    ['db', *mistake.action] if program == programs.MANAGE else ['upgrade', 'check']
                )
                arguments += [replaced(word, values) for word in command or usual]
            environment = {
                'OS_PLACEMENT_CONFIG_DIR': folder,
                **{name: replaced(text, values) for name, text in mistake.environment.items()},
            }
            if program == programs.SERVICE:
                environment['OS_PLACEMENT_DATABASE__MAX_RETRIES'] = '0'
            return programs.shared().run(program, arguments, environment, mistake.missing)

    @staticmethod
    def files(mistake: Mistake, program: str, debug: bool) -> dict[str, str]:
        """Return the names and texts of the files in the directory of the configuration."""
        files = dict(mistake.files)
        if mistake.configuration is not None:
            text = mistake.configuration
            if debug and program == programs.SERVICE:
                text = f'[DEFAULT]\ndebug = true\n{text}'
            files['placement.conf'] = text
        return files

    def report(self, result: programs.Result, program: str) -> str:
        """Return the only line that a program has printed to the standard error.

        The prefix of the line is removed. A migration logs its steps before.
        """
        prefix = programs.START_ERROR if program == programs.SERVICE else 'Error: '
        lines = [line for line in result.stderr.splitlines() if ' INFO alembic.' not in line]
        self.assertEqual(1, len(lines), result)
        self.assertTrue(lines[0].startswith(prefix), result)
        return lines[0].removeprefix(prefix)


def replaced(text: str, values: dict[str, str]) -> str:
    """Return a text in which the values replace their names in braces."""
    for name, value in values.items():
        text = text.replace(f'{{{name}}}', value)
    return text
