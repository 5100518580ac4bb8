"""The script placement-api provides the application, and does not serve by itself."""

from pathlib import Path
import sys

from placement.tests.functional import programs
from placement.tests.functional.web import base

# The package installs it next to Python, in a virtual environment.
SCRIPT = Path(sys.executable).with_name('placement-api')
# Web servers load a file under another name than `__main__`.
LOAD = f"import runpy; print(runpy.run_path('{SCRIPT}', run_name='script')['application'])"


class ScriptTest(base.TestCase):
    def test_it_provides_the_application(self) -> None:
        settings = {
            'OS_API__AUTH_STRATEGY': 'noauth2',
            'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{self.database}',
            'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
        }
        result = programs.shared().run(('-c', LOAD), (), settings)
        self.assertEqual(0, result.status, result.stderr)
        self.assertNotEqual('', result.stdout)

    def test_a_shell_cannot_serve_with_it(self) -> None:
        result = programs.shared().run((str(SCRIPT),), (), {})
        self.assertEqual((1, ''), (result.status, result.stdout))
        self.assertIn('WSGIScriptAlias', result.stderr)
        self.assertEqual(1, result.stderr.count('\n'))
