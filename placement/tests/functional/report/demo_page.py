"""The report of the demo cloud of tools/demo.py."""

import functools
import os
from pathlib import Path
import tempfile

from placement.tests.functional import programs


@functools.cache
def content() -> bytes:
    """Return the page of the demo cloud."""
    with tempfile.TemporaryDirectory(prefix='placement-report-') as folder:
        variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        variables |= {
            'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{folder}/placement.db',
        }
        page = Path(folder, 'report.html')
        for program in (programs.DEMO, (*programs.MANAGE, 'report', str(page))):
            assert programs.shared().start(program, variables).wait() == 0
        return page.read_bytes()
