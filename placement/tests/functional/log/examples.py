"""The examples of the page about logging."""

from pathlib import Path
import re
import textwrap

import placement

ROOT = Path(placement.__file__).parents[1]
PAGE = ROOT / 'doc' / 'source' / 'admin' / 'logging.rst'
ROTATION = ROOT / 'etc' / 'logrotate.d' / 'placement'
# The directory for log files in the examples.
DIRECTORY = '/var/log/placement'


def example(name: str) -> str:
    """Return the text of a code block of the page, without indentation."""
    block = rf'^\.\. code-block:: \w+\n   :name: {name}\n\n((?:   .*\n|\n)+)'
    (text,) = re.findall(block, PAGE.read_text(), re.MULTILINE)
    return textwrap.dedent(text).strip() + '\n'
