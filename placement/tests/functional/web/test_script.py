"""The script placement-api does not serve by itself."""

from pathlib import Path
import sys

from placement.tests.functional import programs
from placement.tests.functional.web import base


class ScriptTest(base.TestCase):
    def test_a_shell_cannot_serve_with_it(self) -> None:
        # The package installs it next to Python, in a virtual environment.
        script = Path(sys.executable).with_name('placement-api')
        result = programs.shared().run((str(script),), (), {})
        self.assertEqual((1, ''), (result.status, result.stdout))
        self.assertIn('WSGIScriptAlias', result.stderr)
        self.assertEqual(1, result.stderr.count('\n'))
