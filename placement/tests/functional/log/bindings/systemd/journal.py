"""Writes journal entries as JSON to the file that an environment variable names."""

import json
import os
from pathlib import Path
from typing import Any


def send(MESSAGE: str, **fields: Any) -> None:  # noqa: N803 - as in systemd-python
    """Append an entry to the file."""
    with Path(os.environ['TEST_JOURNAL']).open('a') as journal:
        journal.write(json.dumps({'MESSAGE': MESSAGE, **fields}) + '\n')
