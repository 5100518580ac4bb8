"""The report of the demo cloud of tools/demo.py."""

import functools
import os
from pathlib import Path
import subprocess
import sys
import tempfile

import placement

_ROOT = Path(placement.__file__).parents[1]


@functools.cache
def content() -> bytes:
    """Return the page of the demo cloud."""
    with tempfile.TemporaryDirectory(prefix='placement-report-') as folder:
        variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        variables |= {
            'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{folder}/placement.db',
            'PYTHONPATH': str(_ROOT),
        }
        _run(variables, str(_ROOT / 'tools' / 'demo.py'))
        return _run(variables, '-m', 'placement.cmd.manage', 'report', '-')


def _run(variables: dict[str, str], *arguments: str) -> bytes:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE).stdout
