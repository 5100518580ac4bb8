"""The module `syslog`, whose messages are JSON in the file that an environment variable names."""

from importlib import machinery, util
import json
import os
from pathlib import Path
import sys

_FOLDERS = [one for one in sys.path if one != str(Path(__file__).parent)]
_SPEC = machinery.PathFinder.find_spec('syslog', _FOLDERS)
assert _SPEC is not None and _SPEC.loader is not None
_real = util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_real)
globals().update({name: value for name, value in vars(_real).items() if name.startswith('LOG_')})
_opened: list[object] = []


def openlog(identifier: str, options: int, facility: int) -> None:
    """Remember the identifier and the facility."""
    _opened[:] = identifier, facility


def syslog(priority: int, message: str) -> None:
    """Append an entry to the file."""
    with Path(os.environ['TEST_JOURNAL']).open('a') as file:
        entry = {'MESSAGE': message, 'PRIORITY': priority, 'OPENED': _opened}
        file.write(json.dumps(entry) + '\n')
