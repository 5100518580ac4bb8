"""The report of the demo cloud of tools/demo.py."""

import functools
import os
from pathlib import Path
import tempfile

from placement.tests.functional import programs

# The query of the guide.
LARGE = 'resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40&required=!COMPUTE_STATUS_DISABLED'


@functools.cache
def content() -> bytes:
    """Return the page of the demo cloud."""
    with tempfile.TemporaryDirectory(prefix='placement-report-') as folder:
        variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        variables |= {
            'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{folder}/placement.db',
        }
        page = Path(folder, 'report.html')
        options = ('--drain', '--headroom', f'm1.large={LARGE}')
        for program in (programs.DEMO, (*programs.MANAGE, 'report', str(page), *options)):
            assert programs.shared().start(program, variables).wait() == 0
        return page.read_bytes()
